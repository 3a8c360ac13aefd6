"""Joining functions and locks into one file, where a recorded program ends.

That needs the trace's reader, and with it NumPy, which the program has not asked for: another
Python does it. `subprocess` would need more than a program at its end may do.
"""

import os
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SUFFIX = ".functions.json"
"""Of the file that holds both, in place of the trace's."""

_CODE = """
import sys
sys.path.append(sys.argv[1])
from contention_lab.export.function_timeline import main
sys.exit(main(sys.argv[2:]))
"""


def joined_path(trace: str) -> str:
    """Return the name of the file with both."""
    return os.path.splitext(trace)[0] + SUFFIX


def raw_path(trace: str) -> str:
    """Return where the functions alone are meanwhile."""
    return joined_path(trace) + ".partial"


def join(trace: str, late_ns: int) -> tuple[bool, str]:
    """Write the file with both, and remove that of the functions alone.

    Parameters
    ----------
    trace
        The trace.
    late_ns
        By how much the times of the functions are late.

    Returns
    -------
    bool
        Whether it is there.
    str
        What it holds, or why it is not there.
    """
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    files = [trace, raw_path(trace), joined_path(trace)]
    words = [sys.executable, "-E", "-c", _CODE, home, *files, str(late_ns)]
    try:
        status, said = _output(words)
    except (OSError, KeyboardInterrupt) as error:
        status, said = 1, str(error) or "interrupted"
    line = said.strip().rpartition("\n")[2]
    if status == 0:
        return True, line
    return False, line or "the Python that joins them ended early"


def _output(words: "Sequence[str]") -> tuple[int, str]:
    """Run a program; return its exit status and what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    source, sink = os.pipe()
    try:
        actions = [
            (posix.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (posix.POSIX_SPAWN_DUP2, sink, 1),
            (posix.POSIX_SPAWN_DUP2, sink, 2),
        ]
        try:
            pid = posix.posix_spawn(words[0], list(words), environment, file_actions=actions)
        finally:
            os.close(sink)
        parts = []
        while part := os.read(source, 65536):
            parts.append(part)
    finally:
        os.close(source)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # the program lets the system do away with its children
        status = 0 if parts else 1
    return status, b"".join(parts).decode("utf-8", "replace")
