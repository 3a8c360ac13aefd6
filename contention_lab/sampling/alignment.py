"""Bringing stacks and states of threads together that were read at different moments.

py-spy tells when it first saw a stack, on a clock whose start is known to some milliseconds, and
the kernel was asked at other moments. Two steps make one sample of both. The stacks are shifted in
time to where they tell most about the states (their mutual information is largest). And a stack
under which threads were mostly found in one state counts as in that state: that a thread which
sleeps in `acquire` was on a CPU a moment later says nothing about the stack.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.int64]

EARLIEST_NS: Final = -20_000_000
LATEST_NS: Final = 60_000_000
STEP_NS: Final = 2_000_000
"""How far stacks may have to be shifted."""

DOMINANT: Final = 0.6
"""Share of the moments from which on a state is that of a stack."""
FEWEST: Final = 5
"""Moments below which a stack has no usual state."""


def best_shift_ns(
    stacks: Sequence[tuple[Integers, Integers]],
    states: Sequence[tuple[Integers, Integers]],
    usual_ns: int,
) -> int:
    """Return how much later than they were true stacks have been written down.

    Parameters
    ----------
    stacks
        For each thread: when its stack changed, and to which (any number; -1: not there).
    states
        For each thread: when it was looked at, and in which state it was (any number).
    usual_ns
        What to assume where nothing tells: half an interval between two samples.
    """
    best, shift = 0.0, usual_ns
    for shift_ns in range(EARLIEST_NS, LATEST_NS + 1, STEP_NS):
        found = _information(stacks, states, shift_ns)
        # Of equal ones the nearest to what is usual.
        if found > best * 1.0001 or (
            found > best * 0.9999 and abs(shift_ns - usual_ns) < abs(shift - usual_ns)
        ):
            best, shift = max(best, found), shift_ns
    return shift


def _information(
    stacks: Sequence[tuple[Integers, Integers]],
    states: Sequence[tuple[Integers, Integers]],
    shift_ns: int,
) -> float:
    """Return the mutual information of stack and state, in nats times moments."""
    pairs: Counter[tuple[int, int]] = Counter()
    for (changed, stack), (looked, state) in zip(stacks, states, strict=True):
        if not len(changed) or not len(looked):
            continue
        at = np.searchsorted(changed, looked + shift_ns, side="right") - 1
        there = at >= 0
        both = np.stack([stack[at[there]], state[there]], axis=1)
        found, counts = np.unique(both, axis=0, return_counts=True)
        for (one, other), count in zip(found.tolist(), counts.tolist(), strict=True):
            pairs[one, other] += count
    rows: Counter[int] = Counter()
    columns: Counter[int] = Counter()
    for (one, other), count in pairs.items():
        rows[one] += count
        columns[other] += count
    whole = sum(pairs.values())
    return sum(
        count * float(np.log(count * whole / (rows[one] * columns[other])))
        for (one, other), count in pairs.items()
    )


def usual_states(seen: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return, for each stack that has one, the state that threads were mostly found in under it.

    Parameters
    ----------
    seen
        Stack and state of each moment.
    """
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for stack, state in seen:
        counts[stack][state] += 1
    found = {}
    for stack, states in counts.items():
        state, count = states.most_common(1)[0]
        whole = states.total()
        if whole >= FEWEST and count >= DOMINANT * whole:
            found[stack] = state
    return found
