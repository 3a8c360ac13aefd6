"""Finding `spin-collapse`: waiters that spin take the CPU from the thread they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_SPIN_OF_CPU,
    LEAST_STRETCH,
    LEAST_SURPLUS_THREADS,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
)
from contention_lab.diagnosis.wording import (
    duration,
    lock_and_origin,
    names,
    percent,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "spin-collapse"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock it is true of.

    It is true if all of these are:

    - threads wait for the lock for a tenth of their time or more;
    - they burn a large share of the process's CPU time spinning, be it in a spinlock or in a loop
      of failed tries at any lock that does nothing else;
    - more threads want what the holder needs than there is: the cores, or, in loops of failed
      tries, which are Python, the GIL;
    - holds last longer than they need to, because the holder is taken off the CPU in the middle
      or does not get it back: longer on average than usual at the same place, or, where the
      recorder measured it, mostly off the CPU in holds during which the scheduler preempted the
      holder. A holder that sleeps or waits for input is not preempted. In loops of failed tries:
      the holder was seen waiting for the GIL or a CPU for a third of its holds or more.

    With a CPU for every spinner none is said: then spinning wastes energy, but it is the holds
    that threads wait for. Nor is it if the trace does not say how many cores there are.

    Severity is the share of the wall time by which holds lasted longer than usual. Of loops of
    failed tries, the culprits are the victims: the code under the lock is no slower than it should.
    """
    return (finding for case in file.cases if (finding := of_lock(case)))


def of_lock(case: LockCase) -> Finding | None:
    """Return the finding if it is true of a lock."""
    share = stretched_share(case)
    if share <= 0.0:
        return None
    evidence = case.evidence() | {
        "spin_of_cpu": case.spin_of_cpu,
        "average_spinners": case.spinners,
        "cores": case.program.cores,
        "stretch": case.stretch,
        "stretched_hold_s": case.recorded_hold_s - case.usual_hold_s,
    }
    return Finding(
        kind=KIND,
        severity=share,
        summary=summary(case),
        lock=case.lock,
        victims=case.victims,
        culprits=case.victims if tries(case) else case.culprits,
        evidence=evidence,
        remedies=(_block(share) if tries(case) else _park(share),),
    )


def stretched_share(case: LockCase) -> float:
    """Return the share of the wall time that spinners cost the holder; 0 without a collapse."""
    spinning = (
        case.total("wait_s") >= LEAST_WAIT_S
        and case.wait_share >= LEAST_WAIT_SHARE
        and case.spin_of_cpu >= LEAST_SPIN_OF_CPU
        and not case.works_between_tries
    )
    if not spinning or not case.program.wall_s:
        return 0.0
    crowded = (
        case.program.cores is not None
        and case.spinners + 1.0 >= case.program.cores + LEAST_SURPLUS_THREADS
        and case.stretch >= LEAST_STRETCH
    )
    stretched_s = case.recorded_hold_s - case.usual_hold_s if crowded else 0.0
    if tries(case):
        stretched_s = max(stretched_s, case.recorded_hold_s * kept_off(case))
    return min(stretched_s / len(case.rows) / case.program.wall_s, LARGEST_SEVERITY)


def tries(case: LockCase) -> bool:
    """Tell whether the waiting is mostly loops of failed tries."""
    return case.total("failed_tries") > case.total("contended")


def kept_off(case: LockCase) -> float:
    """Return the share of its holds that a holder was kept from running; 0 if that is little."""
    share = case.held.share("gil", "preempted")
    return share if share >= 1.0 - 1.0 / LEAST_STRETCH and case.held.parts["gil"] else 0.0


def summary(case: LockCase) -> str:
    """Return the finding as a sentence."""
    spinning = min(max(1, round(case.spinners)), max(1, case.users - 1))
    culprit = case.culprits[0]
    held = case.holds.get(culprit.code)
    lasting = ""
    if held:
        lasting = f", {duration(held.mean_s)} at a time; "
        if held.displaced_s > held.total_s - held.count * held.usual_s:
            on_core = 1.0 - held.displaced_s / held.total_s
            lasting += "the scheduler takes it off its core, it runs for "
            lasting += f"{percent(on_core)} of that"
        elif tries(case) and kept_off(case):
            lasting += f"it waits for the GIL or a CPU for {percent(kept_off(case))} of that"
        else:
            lasting += f"half of these holds take under {duration(held.usual_s)}"
    if tries(case):
        return (
            f"{spinning} of {case.users} threads spin in {names(case.victims, most=2)}, trying "
            f"again and again without blocking, and burn {percent(case.spin_of_cpu)} of the CPU "
            f"time, while {place(culprit.code)} holds {lock_and_origin(case.lock)}{lasting}; that "
            "keeps the holder from running."
        )
    return (
        f"{spinning} of {case.users} threads spin and burn {percent(case.spin_of_cpu)} of the CPU "
        f"time on {case.program.cores} core{'s' * (case.program.cores != 1)} while "
        f"{place(culprit.code)} holds {lock_and_origin(case.lock)}{lasting}; that keeps the holder "
        "from running."
    )


def _block(share: float) -> Remedy:
    high = 1.0 / (1.0 - share)
    return Remedy(
        "block",
        "Acquire the lock with `acquire()` or `with`, which sleeps until it is free, instead of "
        "trying in a loop.",
        None,
        1.0,
        high,
    )


def _park(share: float) -> Remedy:
    high = 1.0 / (1.0 - share)
    return Remedy(
        "park",
        "Use a lock that parks its waiters (`Mutex`): that gives the CPU back to the holder. It "
        "does not let two threads hold it at once: what is serial stays serial.",
        None,
        1.0,
        high,
    )
