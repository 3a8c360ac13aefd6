"""The verdict `healthy`: no lock limits the program, as far as its locks were recorded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.processes import SHARED
from contention_lab.analysis.sites import is_user_code
from contention_lab.diagnosis.coordination_parties import waiting_places
from contention_lab.diagnosis.thresholds import (
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    MOSTLY,
)
from contention_lab.diagnosis.wording import counted, duration, names, percent
from contention_lab.trace import Level

if TYPE_CHECKING:
    from contention_lab.analysis.native_locks import NativeLockRow
    from contention_lab.diagnosis.awaited import Awaited
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase
    from contention_lab.trace import Lock


ACQUITTAL: Final = "No lock limits this program"
"""How a sentence begins that acquits all locks."""


def summary(file: CaseFile) -> str:
    """Return what is to be said where no finding is true.

    Of a recording that is cut or damaged, or goes on, nothing is concluded: what limits the program
    may come after it.
    """
    said = _whole(file)
    if not file.trace.problems or not said.startswith(ACQUITTAL):
        return said
    return (
        "Nobody is accused, but the recording is not whole; as far as it goes, "
        f"{said[:1].lower()}{said[1:]}"
    )


def _whole(file: CaseFile) -> str:
    """Return what is to be said of a recording that is whole.

    It says how little was waited, or that nothing was; not that the program is fast: what else
    limits it, a trace of locks does not show. Where much was waited for a lock that nobody was seen
    to hold, or by threads for one another, it says that instead of acquitting; and at level
    `counters`, where no holder is recorded, which level shows them.
    """
    mutual = next(filter(_is_mutual, file.awaited), None)
    if mutual is not None:
        where = names(waiting_places(file.trace, mutual.case), most=2)
        return (
            f"Nobody is accused: {counted(len(mutual.case.waiters), 'thread')} spend "
            f"{percent(mutual.wait_share)} of their time in {where}, where they wake one another; "
            "whether that is a lock of the program's own or an order that its work needs, the "
            "recording does not show."
        )
    native = _in_native_code(file)
    if not file.rows:
        return f"{ACQUITTAL}: none that is recorded was used{native}."
    wait_s = sum(row.wait_s for row in file.rows)
    if not wait_s:
        which = " of Python's" if any(_is_competed_for(row) for row in file.native_locks) else ""
        return f"{ACQUITTAL}: nobody had to wait for one{which}{native}."
    thread_s = sum(time.wall_s for time in file.times)
    share = f"{percent(wait_s / thread_s)} of their time" if thread_s else duration(wait_s)
    worst = file.rows[0]
    if file.trace.level == Level.COUNTERS and wait_s >= max(
        LEAST_WAIT_S, LEAST_WAIT_SHARE * thread_s
    ):
        return (
            f"Nobody is accused: threads waited {share} for locks, {duration(worst.wait_s)} of it "
            f"for `{worst.lock.label}`, but who held it meanwhile is not recorded at level "
            "counters: record with --level profile."
        )
    unexplained = next(filter(_is_unexplained, file.cases), None)
    if unexplained is not None:
        waited = duration(unexplained.total("wait_s"))
        return (
            f"Nobody is accused: threads waited {share} for locks, {waited} of it for "
            f"`{unexplained.lock.name}`, but the recording does not show what held it meanwhile. "
            f"{_why(file, unexplained)}"
        )
    if file.cases and file.cases[0].only_retried:
        first = file.cases[0]
        return (
            f"{ACQUITTAL}: its threads found `{first.lock.name}` taken "
            f"{counted(int(first.total('failed_tries')), 'time')}, and went on with something "
            f"else{native}."
        )
    return (
        f"{ACQUITTAL}: its threads waited {share} for locks, "
        f"{duration(worst.wait_s)} of it for {_named(worst.lock)}, the most waited for{native}."
    )


def _named(lock: Lock) -> str:
    """Return a lock's label; one that Python's own modules made for themselves is said to be so."""
    if lock.site is not None:
        is_pythons = not is_user_code(lock.site.filename)
    else:
        module, dot, _ = lock.name.partition(".")
        is_pythons = (
            dot != "" and module in sys.stdlib_module_names and lock.type.startswith("threading.")
        )
    said = ", a lock inside Python's standard library" if is_pythons else ""
    return f"`{lock.label}`{said}"


def _in_native_code(file: CaseFile) -> str:
    """Return what is to be said of locks of native code that were waited for without a finding."""
    row = next(filter(_is_competed_for, file.native_locks), None)
    if row is None:
        return ""
    thread_s = sum(time.wall_s for time in file.times if time.thread.native_id in row.users)
    if row.wait_s < LEAST_WAIT_SHARE * thread_s:
        return (
            f"; threads waited for {row.identity.text} for {percent(row.wait_s / thread_s)} "
            "of their time"
        )
    return (
        f"; for {row.identity.text} {duration(row.wait_s)} was waited, but no core was idle "
        "meanwhile, or it is not known who had it"
    )


def _is_competed_for(row: NativeLockRow) -> bool:
    """Return whether it is a lock of native code that threads waited for longer than by chance."""
    return row.identity.is_contention and row.wait_s >= LEAST_WAIT_S


def _is_mutual(awaited: Awaited) -> bool:
    """Return whether threads waited much for one another, in turns that no finding explains.

    One alone that wakes itself, in a signal handler, keeps no other waiting.
    """
    case = awaited.case
    return (
        case.purpose in (Purpose.CONDITION, Purpose.EVENT, Purpose.PERMIT, Purpose.ITEM)
        and case.wait_ns >= LEAST_WAIT_S * 1e9
        and awaited.wait_share >= LEAST_WAIT_SHARE
        and awaited.is_mutual
    )


def _is_unexplained(case: LockCase) -> bool:
    """Return whether a lock was waited for much, and mostly not for code that held it."""
    return (
        case.total("wait_s") >= LEAST_WAIT_S
        and case.wait_share >= LEAST_WAIT_SHARE
        and case.blamed_share + case.gil_share < MOSTLY
        and not case.only_retried
    )


def _why(file: CaseFile, case: LockCase) -> str:
    if case.lock.type.startswith(SHARED):
        processes = file.trace.meta.get("processes")
        if isinstance(processes, int) and processes > 1:
            return (
                f"In none of the {processes} processes was anybody seen to hold it: it may be a "
                "signal that one gives and another waits for."
            )
        return (
            "It is shared with other processes: only their traces (--subprocesses), named with "
            "this one, show it."
        )
    return "It may have been taken before the recording began, or never given back."
