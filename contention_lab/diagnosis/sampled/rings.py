"""Finding `lock-order-deadlock` by samples: threads that wait for one another, to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import LEAST_RING_S
from contention_lab.diagnosis.wording import counted, duration, enumeration
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.sampled.facts import Facts


def find(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if threads wait for one another in a ring, and have done so to the end."""
    if not facts.moments or not facts.together:
        return
    since: dict[int, float] = {}
    edges: dict[int, tuple[int, int]] = {}
    for thread in np.unique(facts.thread).tolist():
        mine = np.flatnonzero(facts.thread == thread)
        if facts.moment[mine[-1]] < facts.moments - 2:
            continue
        last = mine[-1]
        if facts.doing[last] != Doing.AWAITS_LOCK or not facts.holder[last]:
            continue
        same = (
            (facts.doing[mine] == Doing.AWAITS_LOCK)
            & (facts.lock[mine] == facts.lock[last])
            & (facts.holder[mine] == facts.holder[last])
        )
        broken = np.flatnonzero(~same)
        run = mine[broken[-1] + 1 if len(broken) else 0 :]
        since[thread] = float(facts.weight_s[run].sum())
        edges[thread] = int(facts.holder[last]), int(facts.lock[last])
    for thread in edges:
        ring = [thread]
        while (following := edges.get(ring[-1], (0, 0))[0]) in edges and following not in ring:
            ring.append(following)
        closed = edges[ring[-1]][0] == thread
        if closed and min(since[one] for one in ring) >= LEAST_RING_S:
            yield _finding(facts, ring, edges, min(since[one] for one in ring))
            return


def _finding(
    facts: Facts, ring: list[int], edges: dict[int, tuple[int, int]], stood_s: float
) -> Finding:
    locks = list(dict.fromkeys(edges[one][1] for one in ring))
    named = enumeration([f"`{facts.trace.lock(lock).label}`" for lock in locks])
    waiting = np.isin(facts.thread, ring) & facts.does(Doing.AWAITS_LOCK)
    places = facts.places_of(waiting)
    return Finding(
        kind="lock-order-deadlock",
        severity=1.0,
        summary=(
            f"By samples, {counted(len(ring), 'thread')} wait for one another for {named}, each "
            f"seen in the code that runs while it has the other's, for {duration(stood_s)} "
            "without a move."
        ),
        lock=facts.accused(locks[0]),
        victims=places,
        culprits=places,
        evidence={"samples": int(np.count_nonzero(waiting)), "stood_s": stood_s},
        remedies=(Remedy("order", "Take these locks in one order everywhere."),),
    )
