"""Who waited for others, and what those others did meanwhile: places with their stacks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.sites import user_frame
from contention_lab.analysis.sums import summed
from contention_lab.diagnosis.finding import Party

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.trace import Frame, Trace

PARTIES: Final = 10
"""Places named on a side, at most."""


def places(trace: Trace, weights: Mapping[int, float], whole_s: float) -> tuple[Party, ...]:
    """Return the user frames of stacks, each with its heaviest stack, the heaviest first.

    Parameters
    ----------
    trace
        A trace.
    weights
        By stack id, in any unit.
    whole_s
        What all weights together stand for, in seconds; it is divided in proportion.
    """
    by_frame: dict[Frame | None, dict[int, float]] = defaultdict(dict)
    for stack, weight in weights.items():
        if stack and weight > 0:
            by_frame[user_frame(trace.stack(stack))][stack] = weight
    by_frame.pop(None, None)
    whole = sum(sum(stacks.values()) for stacks in by_frame.values())
    parties = []
    for site, stacks in sorted(by_frame.items(), key=lambda item: -sum(item[1].values())):
        share = sum(stacks.values()) / whole
        heaviest = max(stacks, key=lambda stack: (stacks[stack], -stack))
        parties.append(Party(site, trace.stack(heaviest), share * whole_s, share))
    return tuple(parties[:PARTIES])


def waiting_places(trace: Trace, case: CoordinationCase) -> tuple[Party, ...]:
    """Return where the threads of a case waited."""
    return places(trace, summed(case.stack, case.end_ns - case.start_ns), case.wait_ns / 1e9)


def waking_stacks(case: CoordinationCase) -> dict[int, float]:
    """Return the stacks under which waiters were woken, by how long these had waited."""
    return summed(case.waker_stack[case.last], case.end_ns - case.start_ns)


def kind_of_actors(trace: Trace, ids: Collection[int]) -> str:
    """Return what to call them: `task` if all are asyncio tasks, else `thread`."""
    return "task" if ids and all(trace.thread(one).is_task for one in ids) else "thread"
