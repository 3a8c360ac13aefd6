"""A lock for each object: k parking mutexes, and every thread keeps to the object that is its own.

Threads contend only where there are fewer objects than threads.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.policies.parking import lock
from contention_lab.simulate.policies.policy import Policy, Sharing, Use
from contention_lab.simulate.program import Step, acquire, release


def locks(sharing: Sharing) -> int:
    """Return one lock for each object."""
    return sharing.shards


def shares(sharing: Sharing, threads: int) -> list[float]:
    """Return the share of all acquires that each object gets, did its threads share it evenly."""
    used = min(sharing.shards, threads)
    return [1.0 / used] * used


def section(use: Use, body: Step) -> list[Step]:
    """Acquire the lock of the thread's object."""
    place = use.first + use.thread % use.sharing.shards
    return [acquire(place), body, release(place)]


POLICY: Final = Policy(
    kind="per-object",
    about="a parking mutex for each of k objects, and an object for each thread",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0),)),
    section=section,
    locks=locks,
    shares=shares,
    priced_as="parking",
)
