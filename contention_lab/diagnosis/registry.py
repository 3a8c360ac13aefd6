"""All findings: to add one, write its file and name it here.

Of two that are true of one lock the earlier one stays (see `ranking.py`), so the more specific one
comes first; of two equally severe ones it is the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis import (
    async_lock_across_await,
    backpressure,
    busy_polling,
    capacity_limit,
    event_loop_blocked,
    external_lock,
    gil_bound,
    gil_convoy,
    gil_masked_lock,
    held_across_io,
    idle_wait,
    import_lock,
    load_imbalance,
    lock_order_deadlock,
    lock_order_risk,
    native_lock,
    native_oversubscription,
    pool_self_starvation,
    self_deadlock,
    serialised_by_lock,
    slow_holder_elsewhere,
    spin_collapse,
    starved_by_producer,
    thundering_herd,
    uncontended_overhead,
    unfair_lock,
    writer_starvation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Finding

FINDINGS: Final[tuple[Callable[[CaseFile], Iterator[Finding]], ...]] = (
    lock_order_deadlock.find,
    self_deadlock.find,
    spin_collapse.find,
    writer_starvation.find,
    import_lock.find,
    async_lock_across_await.find,
    capacity_limit.find,
    thundering_herd.find,
    busy_polling.find,
    unfair_lock.find,
    gil_masked_lock.find,
    slow_holder_elsewhere.find,
    held_across_io.find,
    serialised_by_lock.find,
    event_loop_blocked.find,
    pool_self_starvation.find,
    backpressure.find,
    starved_by_producer.find,
    load_imbalance.find,
    external_lock.find,
    native_lock.find,
    native_oversubscription.find,
    gil_convoy.find,
    gil_bound.find,
    uncontended_overhead.find,
    lock_order_risk.find,
    idle_wait.find,
)
"""Each yields what it finds true of a trace."""

COSTS_TIME: Final = (
    *("serialised-by-lock", "held-across-io", "slow-holder-elsewhere", "spin-collapse"),
    *("async-lock-across-await", "event-loop-blocked", "capacity-limit", "writer-starvation"),
    *("unfair-lock", "thundering-herd", "busy-polling", "gil-masked-lock", "uncontended-overhead"),
)
"""Kinds that are about what a lock costs, which says nothing about the order it is taken in."""

TOGETHER: Final = frozenset(
    {
        (spin_collapse.KIND, serialised_by_lock.KIND),
        *((kind, event_loop_blocked.KIND) for kind in COSTS_TIME),
        *((kind, lock_order_risk.KIND) for kind in COSTS_TIME),
        *((lock_order_deadlock.KIND, kind) for kind in COSTS_TIME),
        *((self_deadlock.KIND, kind) for kind in COSTS_TIME),
    }
)
"""Kinds, in the order above, that are both said of one lock: each has its own remedy."""
