"""What a recording tells the user, in words."""

import errno
import os

from contention_lab.capture.trace_file import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def failure(error: int, path: str, file: "tuple[int, int] | None") -> str:
    """Return what became of the file, if something did.

    Parameters
    ----------
    error
        errno of the first write that failed, 0 if none.
    path, file
        Where it is, and which file that was at the start.
    """
    if error == errno.EBADF:
        return "the program closed its descriptor, so the trace ends there"
    if error:
        return f"{os.strerror(error)}, so the trace ends there"
    if file is not None and identity(path) != file:
        return "removed or replaced while it was being written"
    return ""


def counted(totals: "Mapping[str, int]") -> str:
    """Return the counters of a whole recording."""
    return (
        f"{totals['acquires']:,} acquires, {totals['contended']:,} contended, "
        f"{totals['wait_ns'] / 1e9:.3g} s waited"
    )


def already(path: str, caller: str) -> RuntimeError:
    """Return the error where this process is being recorded; it says by whom."""
    return RuntimeError(
        f"already recording to {path} (started by {caller}); stop that recording first"
    )
