"""Pools of threads that a program has made itself, as far as they wait for their own results.

Such a pool has no entry in a trace; what shows it are its waits. Its threads take tasks from one
thing (a queue, a condition) and fulfil results, each an event or a condition of its own. Where all
threads that fulfil results wait for one themselves, nobody is left to do so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contention_lab.analysis.coordination import CoordinationCase

TAKING: Final = frozenset({Purpose.ITEM, Purpose.CONDITION, Purpose.PERMIT, Purpose.EVENT})
FULFILLING: Final = frozenset({Purpose.EVENT, Purpose.CONDITION, Purpose.PERMIT})


@dataclass(frozen=True, slots=True, eq=False)
class Crew:
    """Threads that wait for results that only they fulfil.

    Attributes
    ----------
    case
        Waits for results.
    workers
        Ids of the threads.
    starved
        When all of them waited for one.
    """

    case: CoordinationCase
    workers: tuple[int, ...]
    starved: Windows


def crews(cases: Sequence[CoordinationCase]) -> Iterator[Crew]:
    """Yield the pools that wait for their own results at some time.

    A thread belongs to it if it waits for results, and fulfils some or takes tasks elsewhere. Only
    such threads may have fulfilled any; and results must be many: threads that wait for one and the
    same thing again and again (an inbox) have nothing to do.
    """
    for case in cases:
        if case.purpose not in FULFILLING:
            continue
        takers: set[int] = set()
        for other in cases:
            if other is not case and other.purpose in TAKING:
                takers |= {*other.waiters}
        workers = {one for one in case.waiters if one in case.wakers or one in takers}
        mine = np.isin(case.thread, [*workers])
        results = len(np.unique(case.lock_id[mine]))
        known = bool(case.wakers) and {*case.wakers} <= workers
        hangs = not case.wakers and len(workers) > 1 and workers <= takers
        if not (known and results > len(workers)) and not (hangs and results >= len(workers)):
            continue
        starved = _all_in(case, workers)
        if starved.total_ns:
            yield Crew(case, tuple(sorted(workers)), starved)


def _all_in(case: CoordinationCase, workers: set[int]) -> Windows:
    """Return when all of some threads waited."""
    together: Windows | None = None
    for one in sorted(workers):
        mine = case.thread == one
        waited = Windows.union(case.start_ns[mine], case.end_ns[mine])
        together = waited if together is None else together.without(together.without(waited))
    return together or Windows.union(case.start_ns[:0], case.end_ns[:0])
