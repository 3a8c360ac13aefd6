"""The loop over events, from the start to the end of the simulated time."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from contention_lab.simulate.packing import EndReason, Order, Results, Tables
from contention_lab.simulate.reference.cores import awake, slice_over
from contention_lab.simulate.reference.state import (
    CLAIM,
    END,
    RESET,
    RUNNING,
    SLICE,
    SWITCH,
    WAKE,
    State,
)
from contention_lab.simulate.reference.threads import (
    claim_over,
    interval_over,
    phase_over,
    start_all,
)

if TYPE_CHECKING:
    from contention_lab.simulate.reference.state import Lock


def run(tables: Tables, results: Results) -> None:
    """Simulate, and fill the results.

    Parameters
    ----------
    tables
        What to simulate.
    results
        Arrays made by `Results.empty`.
    """
    state = State(tables, results)
    finite = state.unfinished > 0
    warmup_ns = state.machine["warmup_ns"]
    if warmup_ns > 0.0:
        state.plan(warmup_ns, RESET, 0, 0)
    start_all(state)
    reason = EndReason.STUCK
    while True:
        if state.handled >= state.machine["events_limit"]:
            reason = EndReason.LIMIT
            break
        if not state.heap or (finite and state.unfinished == 0):
            break
        time, _, kind, who, stamp = heapq.heappop(state.heap)
        if time > state.machine["end_ns"]:
            state.now = state.machine["end_ns"]
            reason = EndReason.TIME
            break
        state.now = time
        if state.handled < len(results.events):
            results.events[state.handled] = (time, kind, who)
        state.handled += 1
        _handle(state, kind, who, stamp)
    if finite and state.unfinished == 0:
        reason = EndReason.DONE
    _book_all(state)
    results.totals["now_ns"] = state.now
    results.totals["measured_ns"] = state.now - state.measured_from
    results.totals["events"] = state.handled
    results.totals["reason"] = reason
    results.totals["unfinished"] = state.unfinished


def _handle(state: State, kind: int, who: int, stamp: int) -> None:
    if kind == END:
        phase_over(state, state.threads[who], stamp)
    elif kind == SLICE:
        slice_over(state, state.cores[who], stamp)
    elif kind == WAKE:
        awake(state, state.threads[who], stamp)
    elif kind == CLAIM:
        claim_over(state, state.locks[who])
    elif kind == SWITCH:
        interval_over(state, state.threads[who])
    else:
        _forget(state)


def _forget(state: State) -> None:
    """End the warm-up: what happened so far does not count."""
    _book_all(state)
    for array in (state.results.locks, state.results.threads, state.results.responses):
        array[:] = 0
    state.results.totals["preemptions"] = 0
    state.measured_from = state.now


def _book_all(state: State) -> None:
    for thread in state.threads:
        if thread.place == RUNNING:
            state.settle(thread)
    for lock in state.locks:
        if _is_busy(state, lock):
            state.book_busy(lock)


def _is_busy(state: State, lock: Lock) -> bool:
    if lock.order == Order.CHANNEL:
        return any(thread.serves is lock for thread in state.threads)
    return not lock.is_free()
