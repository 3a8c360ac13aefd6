"""`%%contention` for IPython and Jupyter: record a cell, print the verdict.

    %load_ext contention_lab.ipython_magic
    %%contention -o run.clt
    work()

Nothing of the package is imported before the first cell is recorded.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contention_lab.trace import Trace

USAGE = "usage: %%contention [-o FILE.clt]"
FIRST_LINE = "# here stands %%contention"
"""Keeps the numbers of the lines of a cell what people see; blank ones IPython takes away."""


def load_ipython_extension(shell: Any) -> None:
    """Add the magic; IPython calls this for `%load_ext`."""

    def contention(line: str, cell: str) -> Trace | None:
        return recorded_cell(shell, line, cell)

    contention.__doc__ = recorded_cell.__doc__
    shell.register_magic_function(contention, magic_kind="cell", magic_name="contention")


def recorded_cell(shell: Any, line: str, cell: str) -> Trace | None:
    """Record the locks of a cell and print what limits it: `%%contention [-o FILE.clt]`.

    With `-o` the trace is kept, and returned; without, only the verdict is printed.

    Parameters
    ----------
    shell
        The running IPython.
    line
        What follows the magic's name.
    cell
        The code.

    Returns
    -------
    Trace or None
        The recording, if it is kept.
    """
    words = shlex.split(line)
    if words and (len(words) != 2 or words[0] != "-o"):
        print(USAGE, file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory(prefix="contention-") as folder:
        kept = Path(words[1]) if words else None
        return _record(shell, cell, kept or Path(folder) / "cell.clt", kept)


def _record(shell: Any, cell: str, path: Path, kept: Path | None) -> Trace | None:
    from contention_lab.capture import record
    from contention_lab.diagnosis import diagnose
    from contention_lab.notebook_cells import Cells
    from contention_lab.report.visible_text import visible
    from contention_lab.trace import load

    session = record(path)
    cells = Cells(shell)
    try:
        session.start()
    except (OSError, RuntimeError) as error:
        print(f"%%contention: {error}", file=sys.stderr)
        return None
    try:
        with cells.noted():
            shell.run_cell(cell if cell.lstrip().startswith("%%") else f"{FIRST_LINE}\n{cell}")
    finally:
        session.add_metadata({"cells": cells.described()})
        session.stop()
    trace = load(path)
    print(visible(diagnose(trace).summary))
    if kept is None:
        print("to keep the recording: %%contention -o run.clt")
        return None
    print(f"next: contention-lab report {kept}")
    return trace
