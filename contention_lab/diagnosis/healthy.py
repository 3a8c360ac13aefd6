"""The verdict `healthy`: no lock limits the program, as far as its locks were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contention_lab.diagnosis.thresholds import LEAST_WAIT_S, LEAST_WAIT_SHARE
from contention_lab.diagnosis.wording import duration, percent

if TYPE_CHECKING:
    from contention_lab.diagnosis.case_file import CaseFile


def summary(file: CaseFile) -> str:
    """Return what is to be said where no finding is true.

    It says how little was waited, or that nothing was; not that the program is fast: what else
    limits it, a trace of locks does not show. Where much was waited for a lock that nobody was seen
    to hold, it says that instead of acquitting.
    """
    if not file.rows:
        return "No lock limits this program: none that is recorded was used."
    wait_s = sum(row.wait_s for row in file.rows)
    if not wait_s:
        return "No lock limits this program: nobody had to wait for one."
    thread_s = sum(time.wall_s for time in file.times)
    share = f"{percent(wait_s / thread_s)} of their time" if thread_s else duration(wait_s)
    worst = file.rows[0]
    if worst.wait_s >= max(LEAST_WAIT_S, LEAST_WAIT_SHARE * thread_s) and not worst.hold_s:
        return (
            f"Nobody is accused: threads waited {share} for locks, {duration(worst.wait_s)} of it "
            f"for `{worst.lock.label}`, but the recording does not show what held it meanwhile. "
            "It may have been taken before the recording began, or never given back."
        )
    return (
        f"No lock limits this program: its threads waited {share} for locks, "
        f"{duration(worst.wait_s)} of it for `{worst.lock.label}`, the most waited for."
    )
