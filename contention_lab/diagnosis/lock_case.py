"""The facts about one lock that findings are judged by.

Locks made at one place under one name are one case: a lock per object is one line of code. It
states facts and compares them with nothing; `thresholds.py` and the findings do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.analysis.light_tries import LONGEST_LOOK_S
from contention_lab.diagnosis.finding import AccusedLock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.analysis import LockRow
    from contention_lab.analysis.holding import HeldTime
    from contention_lab.diagnosis.chain_root import Root
    from contention_lab.diagnosis.errand import Errand
    from contention_lab.diagnosis.finding import Party
    from contention_lab.trace import Frame, Lock


@dataclass(frozen=True, slots=True)
class Program:
    """What is known of the whole program.

    Attributes
    ----------
    wall_s
        Length of the recording.
    cpu_s
        CPU time of the process.
    work_cpu_s
        Of it: without spinning for locks.
    cores
        Of the machine, None if the trace does not say.
    """

    wall_s: float
    cpu_s: float
    work_cpu_s: float
    cores: int | None

    @property
    def idle_share(self) -> float:
        """Share of the machine that did no work for the program; 1 without a core count.

        Spinning is no work. However many threads wait, the program cannot use more than this.
        """
        capacity_s = self.wall_s * (self.cores or 0)
        return max(0.0, 1.0 - self.work_cpu_s / capacity_s) if capacity_s else 1.0

    def largest_gain(self, share: float, *, running: float) -> float:
        """Return how many times faster the program can become if several do a part of it at a time.

        Parameters
        ----------
        share
            Of the wall time, the part.
        running
            Share of the part that needs a core: it can only be spread over those there are.
        """
        needs_core = share * running
        left = 1.0 - share + (needs_core / self.cores if self.cores else 0.0)
        return max(1.0, 1.0 / left) if left else 1.0


@dataclass(frozen=True, slots=True)
class HoldTimes:
    """Recorded holds of a lock at one place.

    Attributes
    ----------
    count
        How many.
    total_s
        Together.
    usual_s
        The median.
    costly_s
        How long those last that make others wait: half of the waiting is for longer ones.
    displaced_s
        Of the total: off the CPU in holds during which the scheduler took the holder off its core
        against its will. Only where the recorder measured it; 0 where it did not.
    """

    count: int
    total_s: float
    usual_s: float
    costly_s: float
    displaced_s: float = 0.0

    @property
    def mean_s(self) -> float:
        """The mean."""
        return self.total_s / self.count


@dataclass(frozen=True, slots=True)
class LockCase:
    """One lock, or all locks made at one place under one name.

    Attributes
    ----------
    program
        The program it belongs to.
    lock
        Its name, type and origin.
    rows
        Its rows of the lock table, one per instance.
    users
        Threads that used it.
    user_wall_s
        Wall time of these threads together.
    waiters
        Average number of threads waiting while any was; 0 if no wait was recorded.
    waited_s
        Wall time during which any thread waited, from recorded waits.
    blamed_share
        Share of the waiting during which code that holds the lock is to blame; 1 if no wait was
        recorded at all.
    gil_share
        Share of the waiting during which the holder itself waited for the GIL.
    victims, culprits
        Places that waited, and that held while others waited; the most first.
    holds
        Recorded holds by culprit's site.
    held
        What holders did while others waited for them, each second as often as threads waited.
    in_libraries_share
        Share of the blame of holds that ended in a library's code: it took the lock for its caller.
    root
        The locks that its holders themselves waited for, if that is most of it.
    errand
        What else they waited for, if that is most of it.
    gil_to_try_s
        Waiting for the GIL between failed tries, of threads that did nothing else in between.
    naps_between_tries
        Whether threads mostly sleep between failed tries, which they do not do otherwise.
    """

    program: Program
    lock: AccusedLock
    rows: tuple[LockRow, ...]
    users: int
    user_wall_s: float
    waiters: float
    waited_s: float
    blamed_share: float
    gil_share: float
    victims: tuple[Party, ...]
    culprits: tuple[Party, ...]
    holds: Mapping[Frame | None, HoldTimes]
    held: HeldTime
    in_libraries_share: float
    root: Root | None = None
    errand: Errand | None = None
    gil_to_try_s: float = 0.0
    naps_between_tries: bool = False

    def total(self, name: str) -> float:
        """Return the sum over the instances of a field of `LockRow`."""
        return float(sum(getattr(row, name) for row in self.rows))

    @property
    def works_between_tries(self) -> bool:
        """Whether threads that find it taken mostly do something else then, by their CPU time."""
        tried = self.total("failed_tries")
        return tried > self.total("contended") and self.total("spin_cpu_s") > tried * LONGEST_LOOK_S

    @property
    def only_retried(self) -> bool:
        """Whether nobody waited for it: threads that found it taken did something else first.

        True if there were only tries without blocking, and threads work in between; or, unless
        they only sleep then or do nothing but try, if tries are further apart than half a hold:
        whoever waited would have looked sooner. Waiting for the GIL to try again is no such doing.
        """
        tried = self.total("failed_tries")
        if not tried or self.total("contended"):
            return False
        if self.works_between_tries:
            return True
        if self.naps_between_tries or self.total("spin_s") > self.total("wait_s") / 2:
            return False
        count = sum(hold.count for hold in self.holds.values())
        usual_s = self.recorded_hold_s / count if count else 0.0
        return (self.total("wait_s") - self.gil_to_try_s) / tried > usual_s / 2

    @property
    def blamed(self) -> tuple[Party, ...]:
        """Culprits, after what they themselves wait for where that is no lock.

        Both cause the same waiting, so that their shares together may exceed all of it.
        """
        return self.culprits if self.errand is None else (*self.errand.parties, *self.culprits)

    @property
    def passed_on(self) -> str:
        """What the holders themselves wait for, as the end of a sentence; empty if they do not."""
        known = self.root or self.errand
        return known.clause() if known else ""

    @property
    def blamed_s(self) -> float:
        """Waiting, of all threads together, that code holding the lock is to blame for."""
        return self.total("wait_s") * self.blamed_share

    @property
    def wait_share(self) -> float:
        """Share of its users' time that they waited for it."""
        return self.total("wait_s") / self.user_wall_s if self.user_wall_s else 0.0

    @property
    def blamed_wait_share(self) -> float:
        """Share of its users' time that they waited for code that held it."""
        return self.wait_share * self.blamed_share

    @property
    def utilisation(self) -> float:
        """Share of the wall time that the busiest instance was held."""
        return max((row.utilisation for row in self.rows), default=0.0)

    @property
    def spin_of_cpu(self) -> float:
        """Share of the process's CPU time burnt in the lock's spin loops."""
        return self.total("spin_cpu_s") / self.program.cpu_s if self.program.cpu_s else 0.0

    @property
    def spinners(self) -> float:
        """Average number of threads in the lock's spin loops while any thread waited."""
        return self.total("spin_s") / self.waited_s if self.waited_s else 0.0

    @property
    def usual_hold_s(self) -> float:
        """How long the recorded holds would have taken, had nobody taken the holder's CPU.

        Each hold as long as the median at its place, or without the time the holder was displaced,
        whichever is less: when nearly all holds are stretched, so is the median.
        """
        return sum(
            min(hold.count * min(hold.usual_s, hold.mean_s), hold.total_s - hold.displaced_s)
            for hold in self.holds.values()
        )

    @property
    def recorded_hold_s(self) -> float:
        """How long the recorded holds took."""
        return sum(hold.total_s for hold in self.holds.values())

    @property
    def stretch(self) -> float:
        """How many times as long as usual recorded holds lasted; 1 if that is not known."""
        return self.recorded_hold_s / self.usual_hold_s if self.usual_hold_s else 1.0

    @property
    def idle_share(self) -> float:
        """Share of the machine that did no work for the program; 1 without a core count."""
        return self.program.idle_share

    def evidence(self) -> dict[str, float | int | None]:
        """Return the figures that every finding about a lock states."""
        whole = ("acquires", "contended", "timed_out", "failed_tries", "open_waits")
        seconds = ("wait_s", "spin_s", "spin_cpu_s", "park_s", "gil_s", "hold_s")
        return {
            **{name: self.total(name) for name in seconds},
            **{name: int(self.total(name)) for name in (*whole, "missing_waits")},
            "utilisation": self.utilisation,
            "users": self.users,
            "wait_share": self.wait_share,
            "blamed_s": self.blamed_s,
            "holder_gil_s": self.total("wait_s") * self.gil_share,
            "hand_off_s": max(
                0.0, self.total("wait_s") * (1.0 - self.blamed_share - self.gil_share)
            ),
            "average_waiters": self.waiters,
            **({"passed_on_share": self.root.share} if self.root else {}),
            **({"holder_waits_share": self.errand.share} if self.errand else {}),
            "longest_wait_s": max((row.wait_max_s for row in self.rows), default=0.0),
            "longest_hold_s": max((row.hold_max_s for row in self.rows), default=0.0),
        }


def accused(row: LockRow, instances: int) -> AccusedLock:
    """Return the lock of a row, as one of several."""
    return accused_lock(row.lock, instances)


def accused_lock(lock: Lock, instances: int) -> AccusedLock:
    """Return a lock of the trace, as one of several."""
    return AccusedLock(lock.label, lock.type, lock.site, instances)
