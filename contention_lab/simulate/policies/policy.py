"""The interface of a lock policy: how its lock behaves, and how a critical section uses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contention_lab.simulate.lock_policy import LockCosts, LockPolicy
from contention_lab.simulate.program import Step, acquire, release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Sharing:
    """How threads share what a lock guards.

    Attributes
    ----------
    shards
        Parts, each with a lock of its own, for policies that have several locks.
    first_share
        Share of all acquires that the most used part gets; None: all alike.
    read_share
        Share of critical sections that only read, for policies that tell them apart.
    """

    shards: int = 8
    first_share: float | None = None
    read_share: float = 0.9

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError(f"{self.shards} shards: at least one is needed")


@dataclass(frozen=True, slots=True)
class Use:
    """One thread's use of a policy's locks.

    Attributes
    ----------
    first
        Index of the policy's first lock.
    thread
        Index of the thread, from 0.
    sharing
        How the locks are shared.
    reads
        This critical section only reads.
    """

    first: int
    thread: int
    sharing: Sharing
    reads: bool = False


def one_section(use: Use, body: Step) -> list[Step]:
    """Acquire the lock, do the work, release the lock."""
    return [acquire(use.first), body, release(use.first)]


def one_lock(_sharing: Sharing) -> int:
    """Return the number of locks of a policy that has one."""
    return 1


def whole_share(_sharing: Sharing, _threads: int) -> list[float]:
    """Return the shares of a policy with one lock."""
    return [1.0]


def all_exclusive(_sharing: Sharing) -> float:
    """Return the share of exclusive sections of a lock that nobody shares."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Policy:
    """A kind of lock.

    Attributes
    ----------
    kind
        Its name on the command line and in calibrations.
    about
        What it is, in a line.
    lock
        Its behaviour, for given costs.
    defaults
        Costs on a host that nobody measured: rather too high than too low.
    section
        The steps of a critical section.
    locks
        How many locks there are.
    shares
        Share of all acquires that each of them gets, the most used first, with so many threads.
    exclusive_share
        Share of critical sections that only one thread can be in.
    has_server
        The work is done by a thread of the policy's own.
    is_gil
        Its lock is the one that steps with `gil` need.
    tells_readers
        Reading sections are marked as such.
    priced_as
        The kind whose measured costs it uses; its own by default.
    """

    kind: str
    about: str
    lock: Callable[[LockCosts], LockPolicy]
    defaults: LockCosts = field(default_factory=LockCosts)
    section: Callable[[Use, Step], list[Step]] = one_section
    locks: Callable[[Sharing], int] = one_lock
    shares: Callable[[Sharing, int], Sequence[float]] = whole_share
    exclusive_share: Callable[[Sharing], float] = all_exclusive
    has_server: bool = False
    is_gil: bool = False
    tells_readers: bool = False
    priced_as: str = ""

    @property
    def cost_kind(self) -> str:
        """The kind whose costs this one uses."""
        return self.priced_as or self.kind
