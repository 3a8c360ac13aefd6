"""What a finished recording says of itself.

Kept apart from the session: a recorded program must not pay for `dataclasses`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """What a finished recording says of itself.

    Attributes
    ----------
    waits, holds : int
        Records written.
    dropped_waits, dropped_holds : int
        Records that found no room; the counters in the trace are exact all the same.
    bytes_written : int
        Size of the trace file.
    unrecorded_threads : int
        Threads for which there was no memory to record them.
    acquires, contended : int
        Successful acquires of all locks, and blocking ones whose first try failed. Exact, whatever
        became of the file.
    wait_ns : int
        Time all threads waited for locks, in nanoseconds.
    error : int
        errno of the first failed write, 0 if none.
    """

    waits: int
    holds: int
    dropped_waits: int
    dropped_holds: int
    bytes_written: int
    unrecorded_threads: int
    acquires: int
    contended: int
    wait_ns: int
    error: int
