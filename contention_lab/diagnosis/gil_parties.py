"""Who waits for the GIL and who has it meanwhile, as parties of a finding.

Where the layer below Python was there, every wait and every hold that made somebody wait has the
stack of its thread. Else it is the places that threads were seen at, which say nothing of how long.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.gil_blame import caused_ns, ns_by_stack
from contention_lab.analysis.sites import user_frame
from contention_lab.diagnosis.finding import Party
from contention_lab.diagnosis.sampled_parties import PARTIES, seen_at, stack_samples
from contention_lab.trace import State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contention_lab.trace import Trace


def gil_parties(
    trace: Trace, victims: Collection[int], culprits: Collection[int], wait_s: float
) -> tuple[tuple[Party, ...], tuple[Party, ...]]:
    """Return the places of both sides, the most first.

    Parameters
    ----------
    trace
        The trace.
    victims, culprits
        Ids of the threads on either side.
    wait_s
        The waiting of the victims, which is divided over the places.
    """
    waits, holds = trace.gil_waits, trace.gil_holds
    waits = waits[np.isin(waits["thread"], [*victims])]
    mine = np.isin(holds["thread"], [*culprits])
    if len(waits) and mine.any():
        blamed = holds[mine]
        return (
            _at(trace, ns_by_stack(waits), wait_s),
            _at(trace, ns_by_stack(blamed, caused_ns(waits, blamed)), wait_s),
        )
    samples = stack_samples(trace)
    waiting = samples["state"] == State.AWAITS_GIL
    running = waiting | (samples["state"] == State.RUNNABLE)
    return (
        seen_at(trace, samples, waiting, wait_s, victims),
        seen_at(trace, samples, running, wait_s, culprits),
    )


def caused_share(trace: Trace, victims: Collection[int], culprits: Collection[int]) -> float:
    """Return the share of the victims' waiting, while anybody has the GIL, that culprits have it.

    1 where holds are not recorded.
    """
    waits, holds = trace.gil_waits, trace.gil_holds
    waits = waits[np.isin(waits["thread"], [*victims])]
    if not len(waits) or not len(holds):
        return 1.0
    caused = caused_ns(waits, holds).astype(np.float64)
    whole = float(caused.sum())
    return float(caused[np.isin(holds["thread"], [*culprits])].sum()) / whole if whole else 1.0


def _at(trace: Trace, by_stack: Mapping[int, int], total_s: float) -> tuple[Party, ...]:
    """Return the places of stacks; what has none is divided as the rest."""
    known = {stack: ns for stack, ns in by_stack.items() if trace.stack(stack)}
    whole = sum(known.values())
    places: dict[tuple[str, str] | None, dict[int, int]] = defaultdict(dict)
    for stack, ns in known.items():
        frame = user_frame(trace.stack(stack))
        places[None if frame is None else (frame.filename, frame.function)][stack] = ns
    order = sorted(places.values(), key=lambda stacks: (-sum(stacks.values()), min(stacks)))
    found = []
    for stacks in order[:PARTIES]:
        heaviest = trace.stack(max(stacks, key=lambda stack: (stacks[stack], -stack)))
        share = sum(stacks.values()) / whole
        found.append(Party(user_frame(heaviest), heaviest, share * total_s, share))
    return tuple(found)
