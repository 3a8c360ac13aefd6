"""What runs beside a recorded program: `record --live` and `record --sample`.

Started by `capture/companion.py` as a process of its own, with the program's number, the path of
the trace, and what to do. It reads the trace that the recorder writes, and never the program's
memory, but for `--sample`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contention_lab.capture.companion import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from contention_lab.trace import Trace

ROWS: Final = 10
"""Locks shown."""
REFRESH_S: Final = 1.0
MOST_OF_THE_TIME: Final = 0.1
"""Share of its time for which it may read a trace that has grown large."""
_LOOK_S: Final = 0.05


def main(words: Sequence[str]) -> None:
    """Do what is asked until the program has ended."""
    pid, trace, purpose, how = int(words[0]), Path(words[1]), words[2], words[3]
    os.nice(5)
    begun_ns = time.time_ns()
    while not (_exists(trace) and trace.stat().st_mtime_ns > begun_ns - 2 * 10**9):
        if not lives(pid):
            return
        time.sleep(_LOOK_S)
    if purpose == SAMPLE:
        from contention_lab.cli.cross_check import sample

        sample(pid, trace)
    else:
        _show(pid, trace, draw=how == "draw")


def lives(pid: int) -> bool:
    """Tell whether a process is there and has not ended."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError as error:
        return isinstance(error, PermissionError)


def _show(pid: int, path: Path, *, draw: bool) -> None:
    """Show the locks of a growing trace, anew each second.

    Where only this goes to the terminal, the table stays in place. Else it would fall between the
    program's own lines, so that it is one line a second about the worst lock.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stderr)
    live = Live(console=console, auto_refresh=False, transient=True) if draw else None
    if live is not None:
        live.start()
        console.show_cursor(True)  # the terminal is the program's as well
    said, first = "", True
    try:
        while _rest(pid, REFRESH_S):
            begun = time.process_time()
            trace = _read(path)
            if trace is None:
                continue
            if live is not None:
                live.update(_table(trace), refresh=True)
            else:
                line = _line(trace)
                if line and line != said:
                    print(f"contention-lab: {line}", file=sys.stderr, flush=True)
                    said = line
            took = 0.0 if first else time.process_time() - begun
            first = False  # which also imports
            if not _rest(pid, took / MOST_OF_THE_TIME - REFRESH_S):
                return
    except KeyboardInterrupt:
        return
    finally:
        if live is not None:
            live.stop()


def _rest(pid: int, seconds: float) -> bool:
    """Wait, unless the program ends; tell whether it goes on."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not lives(pid):
            return False
        time.sleep(_LOOK_S)
    return lives(pid)


def _read(path: Path) -> Trace | None:
    from contention_lab.trace import TraceError, load

    try:
        return load(path)
    except TraceError:
        return None  # its first bytes are not there yet


def worst_first(trace: Trace) -> Iterator[tuple[str, ...]]:
    """Yield name, waiting, longest wait, share of the time held, acquires and contended ones."""
    from contention_lab.analysis import by_site, lock_table
    from contention_lab.report.quantity import count, seconds, share
    from contention_lab.report.visible_text import name

    rows = sorted(lock_table(by_site(trace)), key=lambda row: -row.wait_s)
    for row in rows[:ROWS]:
        yield (
            name(row.lock.label),
            seconds(row.wait_s),
            seconds(row.wait_max_s),
            share(row.utilisation / max(1, row.lock.instance)),
            count(row.acquires),
            count(row.contended),
        )


def _table(trace: Trace) -> Table:
    from rich.table import Table
    from rich.text import Text

    head = ("lock", "waited", "longest", "held", "acquires", "contended")
    table = Table(*head, title=f"after {trace.duration_ns / 1e9:.0f} s")
    for row in worst_first(trace):
        table.add_row(*map(Text, row))
    return table


def _line(trace: Trace) -> str:
    for label, waited, longest, *_ in worst_first(trace):
        return f"{label}: waited for {waited} so far, {longest} at most"
    return ""


def _exists(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


if __name__ == "__main__":
    main(sys.argv[1:])
