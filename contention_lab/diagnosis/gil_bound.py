"""Finding `gil-bound`: several threads run Python, which only one can do at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.busy_polling import pollers
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.gil_parties import gil_parties
from contention_lab.diagnosis.native_lock import share_of_gil_waits
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_COVERING,
    LEAST_GIL_WAIT_SHARE,
    LEAST_HUNGRY,
    LEAST_KEPT,
    LEAST_SPIN_OF_CPU,
    LEAST_TAKING_PART,
    LEAST_UNDER_GIL,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LIGHT_USE,
)
from contention_lab.diagnosis.wording import duration, names, percent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contention_lab.analysis.gil_use import GilThread, GilUse
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock

KIND: Final = "gil-bound"


@dataclass(frozen=True, slots=True)
class Competition:
    """Threads that have or want the GIL, by how they use it.

    Attributes
    ----------
    hungry
        Keep it for as long as they may; if these have it for less than half of the time it is
        held, all threads are here, and none is light.
    light
        Give it back at once, to wait for something else.
    """

    hungry: tuple[GilThread, ...]
    light: tuple[GilThread, ...]

    @property
    def wall_s(self) -> float:
        """The time of all of them."""
        return sum(one.wall_s for one in (*self.hungry, *self.light))

    def waiting(self, threads: tuple[GilThread, ...]) -> float:
        """Return the share of the time of all that some spend waiting for the GIL."""
        return sum(one.wait_s for one in threads) / self.wall_s if self.wall_s else 0.0


def competition(gil: GilUse, pollers: Collection[int] = ()) -> Competition:
    """Sort the threads that take part in the competition for the GIL.

    Those that look at something again and again in vain do so as often as the GIL lets them; that
    they want it is no need of theirs. For how long a thread keeps it is told without the time that
    the machine has taken its core away.
    """
    part = [
        one
        for one in gil.threads
        if one.held_s + one.wait_s >= LEAST_TAKING_PART * one.wall_s > 0
        and one.thread.id not in pollers
    ]
    most_s = max((one.held_s for one in part), default=0.0)
    light = tuple(
        one
        for one in part
        if one.held_each_s * one.on_core_share < LIGHT_USE * gil.switch_interval_s
        and one.held_s < LIGHT_USE * most_s
        and one.wait_s > one.held_s
    )
    few = {one.thread.id for one in light}
    hungry = tuple(one for one in part if one.thread.id not in few)
    held_s = sum(one.held_s for one in part)
    if sum(one.held_s for one in hungry) < LEAST_HUNGRY * held_s:
        return Competition(tuple(part), ())
    return Competition(hungry, light)


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding if it is true of the program, on a build with a GIL.

    It is true if all of these are:

    - two threads or more use the GIL for as long as they may (those that need it only briefly
      between blocking calls suffer from a convoy, which is another finding);
    - these threads spend a fifth or more of their time waiting for it while somebody has it;
    - what they run is no loop of failed tries at a lock: that is spinning, whatever it holds;
    - they do run, and do not wait for a lock of native code with the GIL in hand, nor for a core
      that the machine has taken away: where threads run only briefly each time that they have the
      GIL, waiting counts by the share of their time wanting a core that they had one.

    Locks whose holders are nearly always waiting for the GIL while others wait, or that are
    waited for while nobody holds them, are acquitted: a woken thread owns the lock long before it
    can say so.

    Where two or more of these threads do much of their work under one lock, that is said: it would
    order them without a GIL, too.

    Severity is the share of the time of the threads that take part.
    """
    gil = file.gil
    if gil is None or not gil.sampled or spins(file):
        return
    field = competition(gil, pollers(file.trace))
    wait_s = sum(one.wait_s for one in field.hungry)
    wanting_s = sum(one.held_s + one.wait_s for one in field.hungry)
    of_gil = 1.0 - share_of_gil_waits(file)
    running = _running_share(field, gil.switch_interval_s)
    severity = min(field.waiting(field.hungry) * of_gil * running, LARGEST_SEVERITY)
    if len(field.hungry) < 2 or severity < LEAST_GIL_WAIT_SHARE or wait_s < LEAST_WAIT_S:
        return
    threads = [one.thread.id for one in field.hungry]
    held_s = sum(one.held_s for one in field.hungry)
    victims, culprits = gil_parties(file.trace, threads, threads, wait_s)
    where = f" in {names(victims, most=2)}" if victims else ""
    covering = _covering(file, threads, held_s)
    yield Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{len(field.hungry)} threads run Python{where}, one at a time: they wait for the GIL "
            f"for {percent(wait_s / sum(one.wall_s for one in field.hungry))} of their time, "
            f"{duration(wait_s)} in all; {_advice(covering)}."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence={
            "gil_wait_s": wait_s,
            "gil_held_s": held_s,
            "gil_held_share": gil.held_share,
            "threads": len(field.hungry),
            "switch_interval_s": gil.switch_interval_s,
            **({"under_one_lock_share": covering.share} if covering else {}),
        },
        remedies=(_without_gil(wanting_s, held_s, file.program.cores, covering),),
        acquits=tuple(_innocent(file)),
    )


def _running_share(field: Competition, interval_s: float) -> float:
    """Return what the waiting for the GIL counts: less where its holders lack a core.

    By the median of the time that they had it: half of that is by threads that run for as long.
    """
    held = sorted(field.hungry, key=lambda one: one.ran_each_s)
    whole_s, below_s = sum(one.held_s for one in held), 0.0
    for one in held:
        below_s += one.held_s
        if below_s >= whole_s / 2 and one.ran_each_s >= LEAST_KEPT * interval_s:
            return 1.0
        if below_s >= whole_s / 2:
            break
    return sum(one.held_s * one.on_core_share for one in held) / whole_s if whole_s else 1.0


def spins(file: CaseFile) -> bool:
    """Tell whether much of the CPU time goes into failed tries, which need the GIL."""
    working = {row.lock.id for case in file.cases if case.works_between_tries for row in case.rows}
    spin_s = sum(row.spin_cpu_s for row in file.rows if row.lock.id not in working)
    return spin_s >= LEAST_SPIN_OF_CPU * file.program.cpu_s > 0


def _innocent(file: CaseFile) -> Iterator[AccusedLock]:
    """Yield the locks that were waited for without code under them being the reason."""
    for case in file.cases:
        under_gil = case.held.share("gil") >= LEAST_UNDER_GIL
        if case.blamed_wait_share < LEAST_WAIT_SHARE or under_gil:
            yield case.lock


@dataclass(frozen=True, slots=True)
class Covering:
    """A lock under which several threads do much of their work in Python.

    Attributes
    ----------
    lock
        The lock.
    share
        Of the time that the threads have the GIL: what they do under it, and to take it.
    """

    lock: AccusedLock
    share: float


def _covering(file: CaseFile, threads: Collection[int], held_s: float) -> Covering | None:
    """Return the lock that would order the threads without a GIL, if there is one."""
    cost_ns = file.trace.meta.get("acquire_cost_ns")
    taking_s = float(cost_ns) / 1e9 if isinstance(cost_ns, int | float) and cost_ns > 0 else 0.0
    kept_off = {
        row.lock.id: case.held.share("gil", "preempted") for case in file.cases for row in case.rows
    }
    shares: dict[int, float] = {}
    for row in file.rows:
        if _has_many_holders(row.lock.type) or row.lock.id not in file.locks:
            continue
        own_s = max(0.0, row.hold_s - row.gil_s) * (1.0 - kept_off.get(row.lock.id, 0.0))
        if held_s and own_s + row.acquires * taking_s >= LEAST_COVERING * held_s:
            shares[row.lock.id] = min(1.0, (own_s + row.acquires * taking_s) / held_s)
    counters = file.trace.counters
    for lock in sorted(shares, key=lambda lock: -shares[lock]):
        taken = (counters["lock"] == lock) & (counters["acquires"] > 0)
        if len({*counters["thread"][taken].tolist()} & {*threads}) >= 2:
            return Covering(file.locks[lock], shares[lock])
    return None


def _has_many_holders(kind: str) -> bool:
    """Tell whether several threads work under it at once: permits, workers of a pool, readers."""
    return "Semaphore" in kind or kind.endswith(("PoolExecutor", "RWLock.read"))


def _advice(covering: Covering | None) -> str:
    if covering is None:
        return (
            "no lock is at fault: use processes, native code that lets the GIL go, or a "
            "free-threaded build"
        )
    return (
        f"without a GIL they would wait for `{covering.lock.name}`, under which they do "
        f"{percent(covering.share)} of that work: narrow it first"
    )


def _without_gil(
    wanting_s: float, held_s: float, cores: int | None, covering: Covering | None
) -> Remedy:
    at_once = wanting_s / held_s if held_s else 1.0
    high = max(1.0, min(at_once, float(cores or at_once)))
    text = f"Run the work in processes or without a GIL, on {cores or 'enough'} cores."
    if covering is None:
        return Remedy(
            "no-gil",
            f"{text} No lock needs to change.",
            None,
            1.0,
            high,
        )
    # What is done under the lock goes on one at a time (Amdahl's law).
    high = 1.0 / (covering.share + (1.0 - covering.share) / high)
    return Remedy(
        "no-gil",
        f"{text} It brings more only if `{covering.lock.name}` is taken less often and for less, "
        "or each thread has its own.",
        None,
        1.0,
        high,
    )
