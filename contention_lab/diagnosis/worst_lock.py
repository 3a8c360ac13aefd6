"""The lock that remedies should be for: that of the verdict, else the one most waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.analysis import lock_table
from contention_lab.simulate.capacity import capacity

if TYPE_CHECKING:
    from contention_lab.diagnosis.finding import AccusedLock, Diagnosis
    from contention_lab.trace import Lock, Trace

WAITED: Final = 0.01
"""A lock that was waited for less, of all threads together and as a share of the wall time, is not
worth a remedy."""


def worst_lock(trace: Trace, diagnosis: Diagnosis) -> tuple[int, ...]:
    """Return the ids of the worst lock, and of those made at the same place under its name.

    Parameters
    ----------
    trace
        The recording.
    diagnosis
        Its diagnosis.

    Returns
    -------
    tuple of int
        Empty if no lock is accused, and none was waited for.
    """
    accused = [finding.lock for finding in diagnosis.findings if finding.lock is not None]
    accused += [lock for finding in diagnosis.findings for lock in finding.acquits]
    for lock in accused:
        ids = ids_of(trace, lock)
        if ids and capacity(trace, ids[0]):
            return ids
    rows = [row for row in lock_table(trace) if capacity(trace, row.lock.id)]
    rows = [row for row in rows if row.wait_s >= WAITED * trace.duration_ns / 1e9]
    if not rows:
        return ()
    first = max(rows, key=lambda row: (row.wait_s, row.hold_s)).lock
    return tuple(lock.id for lock in trace.locks.values() if _alike(lock, first))


def ids_of(trace: Trace, lock: AccusedLock) -> tuple[int, ...]:
    """Return the ids of the locks that a finding speaks of."""
    return tuple(
        known.id
        for known in trace.locks.values()
        if (known.label, known.type, known.site) == (lock.name, lock.type, lock.site)
    )


def _alike(one: Lock, other: Lock) -> bool:
    return (one.label, one.type, one.site) == (other.label, other.type, other.site)
