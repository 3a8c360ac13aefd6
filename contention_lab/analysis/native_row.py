"""Locks of native code as rows of the lock table.

They are apart from `lock_table`, whose sums are about locks of the program's own code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.gil_row import GIL_LOCK, quantile
from contention_lab.analysis.intervals import lengths_ns
from contention_lab.analysis.lock_table import LockRow
from contention_lab.analysis.native_locks import EVERYTHING, native_locks
from contention_lab.analysis.native_program import is_native_program
from contention_lab.trace import Lock

if TYPE_CHECKING:
    from contention_lab.analysis.native_locks import NativeLockRow
    from contention_lab.analysis.native_selection import NativeSelection
    from contention_lab.trace import Trace

UNSEEN: Final = frozenset({"gil_s", "hold_s", "utilisation", "acquires", "failed_tries"})
"""Figures that such a row lacks: only waits are seen, and who let go of what others wait for."""


def native_rows(trace: Trace, selection: NativeSelection = EVERYTHING) -> tuple[LockRow, ...]:
    """Return what happened to locks of native code that one thread has and others wait for.

    Parameters
    ----------
    trace
        A trace, not cut down to some threads or stacks.
    selection
        Which waits count. With one, `threads` are those that wait.

    Returns
    -------
    tuple of LockRow
        Locks of one kind in one place are one row, `lock.instance` says how many; what is `UNSEEN`
        is 0. None of a program that is not Python, whose locks are all in `lock_table`.
    """
    if is_native_program(trace):
        return ()
    rows = native_locks(trace, selection)
    whole = selection == EVERYTHING
    return tuple(_row(row, whole=whole) for row in rows if row.identity.is_contention)


def is_native(row: LockRow) -> bool:
    """Tell whether a row is one of these."""
    return row.lock.id == 0 and row.lock != GIL_LOCK


def _row(row: NativeLockRow, *, whole: bool) -> LockRow:
    length = np.sort(lengths_ns(row.events)) / 1e9
    return LockRow(
        lock=Lock(
            0,
            type=row.identity.type_name,
            name=row.label,
            site=row.site,
            parent=0,
            instance=row.locks,
        ),
        acquires=0,
        contended=row.waits,
        timed_out=0,
        failed_tries=0,
        wait_s=row.wait_s,
        spin_s=row.spin_s,
        spin_cpu_s=0.0,
        park_s=row.wait_s - row.spin_s,
        gil_s=0.0,
        hold_s=0.0,
        utilisation=0.0,
        wait_p50_s=quantile(length, 0.5),
        wait_p99_s=quantile(length, 0.99),
        wait_max_s=row.longest_s,
        hold_max_s=0.0,
        threads=len(row.users if whole else np.unique(row.events["native_id"])),
        open_waits=0,
        missing_waits=0,
    )
