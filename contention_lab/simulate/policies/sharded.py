"""Sharded lock: k parking mutexes, one for each part; which part a thread needs is drawn each time.

What the most used part gets bounds everything: X <= 1 / (p D), p its share of all acquires and D
the time it is held.
"""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.lock_policy import LockCosts
from contention_lab.simulate.policies.parking import lock
from contention_lab.simulate.policies.policy import Policy, Sharing, Use
from contention_lab.simulate.program import Step, acquire_shard, release_shard


def locks(sharing: Sharing) -> int:
    """Return one lock for each part."""
    return sharing.shards


def shares(sharing: Sharing, _threads: int) -> list[float]:
    """Return the share of all acquires that each part gets."""
    first = 1.0 / sharing.shards if sharing.first_share is None else sharing.first_share
    others = sharing.shards - 1
    return [first, *[(1.0 - first) / others] * others] if others else [1.0]


def section(use: Use, body: Step) -> list[Step]:
    """Acquire the lock of a part."""
    sharing = use.sharing
    return [
        acquire_shard(use.first, sharing.shards, sharing.first_share),
        body,
        release_shard(use.first),
    ]


POLICY: Final = Policy(
    kind="sharded",
    about="k parking mutexes, one of which is needed each time",
    lock=lock,
    defaults=LockCosts(handoff_ns=((1.0, 100.0),)),
    section=section,
    locks=locks,
    shares=shares,
    priced_as="parking",
)
