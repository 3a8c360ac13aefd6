"""Lock policies, one to a file. A new one is a file here and a line in `POLICIES`."""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.policies import (
    adaptive,
    back_off,
    channel,
    gil,
    mcs,
    parking,
    per_object,
    reader_writer,
    semaphore,
    sharded,
    test_and_set,
    ticket,
)
from contention_lab.simulate.policies.policy import Policy, Sharing, Use

POLICIES: Final[dict[str, Policy]] = {
    module.POLICY.kind: module.POLICY
    for module in (
        test_and_set,
        back_off,
        ticket,
        mcs,
        parking,
        adaptive,
        reader_writer,
        semaphore,
        channel,
        sharded,
        per_object,
        gil,
    )
}
"""Policies by kind."""

__all__ = ["POLICIES", "Policy", "Sharing", "Use"]
