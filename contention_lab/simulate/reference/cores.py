"""The scheduler: cores, one queue of ready threads, slices, switches and wake-ups.

It knows of locks only that a spinner occupies its core, and that it stops spinning when it leaves.
"""

from __future__ import annotations

import math

from contention_lab.simulate.packing import Order
from contention_lab.simulate.reference.state import (
    BLOCKED,
    CLAIM,
    COMPUTE,
    END,
    INF,
    NEXT,
    NOBODY,
    PARKING,
    POLL,
    READY,
    RUNNING,
    SLICE,
    SPIN,
    WAKE,
    Core,
    Lock,
    State,
    Thread,
)


def begin(state: State, thread: Thread, phase: int, ns: float) -> None:
    """Let a running thread spend `ns` of CPU time on a phase."""
    thread.phase, thread.remaining = phase, ns
    thread.began = max(thread.began, state.now)  # later than now while the core still switches
    thread.stamp += 1
    if ns < INF:
        state.plan(thread.began + ns, END, thread.index, thread.stamp)


def offer(state: State, lock: Lock) -> None:
    """Let one of a free lock's spinners notice that it is free, after the hand-off's time."""
    if not lock.claimed:
        lock.claimed = True
        state.plan(state.now + lock.handoff_ns(), CLAIM, lock.index, 0)


def start(state: State, core: Core, thread: Thread) -> None:
    """Put a ready thread on a core."""
    core.thread, core.since, core.armed = thread, state.now, False
    core.stamp += 1
    row = state.results.threads[thread.index]
    row["ready_ns"] += state.now - thread.ready_since
    switch_ns = 0.0 if core.last is thread else state.machine["switch_ns"]
    row["overhead_ns"] += switch_ns
    core.last = thread
    thread.place, thread.core, thread.last_core = RUNNING, core.index, core.index
    thread.began = state.now + switch_ns
    if thread.phase == COMPUTE and thread.has_gil and state.gil is not None and state.gil.drop:
        thread.pending, thread.pending_gil = thread.remaining, True
        thread.phase, thread.remaining = NEXT, 0.0
    lock = thread.lock
    if thread.phase == SPIN:
        assert lock is not None
        if lock.adaptive and lock.owner is not None and lock.owner.place != RUNNING:
            thread.phase, thread.remaining = PARKING, lock.park_ns
        else:
            lock.spinners.append(thread)
            if lock.order == Order.COMPETITIVE and lock.is_free():
                offer(state, lock)
    elif thread.phase == POLL:
        assert lock is not None
        lock.polling += 1
    begin(state, thread, thread.phase, thread.remaining)
    if state.ready:
        arm(state, core)


def stop(state: State, core: Core) -> Thread:
    """Take the thread off a core, and return it."""
    thread = core.thread
    assert thread is not None
    state.settle(thread)
    thread.stamp += 1
    if thread.phase == SPIN:
        assert thread.lock is not None
        thread.lock.spinners.remove(thread)
    elif thread.phase == POLL:
        assert thread.lock is not None
        thread.lock.polling -= 1
    thread.core, core.thread = NOBODY, None
    for lock in reversed(thread.held):
        if lock.adaptive:
            while lock.spinners:
                give_up(state, lock, lock.spinners[0])
    return thread


def give_up(state: State, lock: Lock, thread: Thread) -> None:
    """Let an adaptive spinner park, since the owner has left its core."""
    state.settle(thread)
    lock.spinners.remove(thread)
    begin(state, thread, PARKING, lock.park_ns)


def leave(state: State, thread: Thread, place: int) -> None:
    """Let a running thread give up its core and wait, or end."""
    core = state.cores[thread.core]
    stop(state, core)
    thread.place = place
    if state.ready:
        start(state, core, state.ready.popleft())
    else:
        state.idle += 1


def preempt(state: State, core: Core, successor: Thread | None) -> None:
    """Send a core's thread to the end of the queue; the successor, or the queue's head, runs."""
    thread = stop(state, core)
    thread.place, thread.ready_since = READY, state.now
    state.results.totals["preemptions"] += 1
    state.ready.append(thread)
    start(state, core, state.ready.popleft() if successor is None else successor)


def make_ready(state: State, thread: Thread) -> None:
    """Let a blocked thread run: on an idle core, in place of another, or in its turn."""
    thread.place, thread.ready_since = READY, state.now
    if state.idle:
        state.idle -= 1
        core = state.cores[max(thread.last_core, 0)]
        if core.thread is not None:
            core = next(core for core in state.cores if core.thread is None)
        start(state, core, thread)
        return
    if state.machine["preempt_after_ns"] < INF:
        core = min(state.cores, key=lambda core: core.since)  # the first one among equals
        if state.now - core.since >= state.machine["preempt_after_ns"]:
            preempt(state, core, thread)
            if len(state.ready) == 1:
                arm_all(state)
            return
    state.ready.append(thread)
    if len(state.ready) == 1:
        arm_all(state)


def arm_all(state: State) -> None:
    """Plan the ends of slices: somebody waits for a core."""
    for core in state.cores:
        arm(state, core)


def arm(state: State, core: Core) -> None:
    """Plan the end of a slice: at the first tick after it is used up."""
    if core.armed:
        return
    core.armed = True
    at = max(state.now, core.since + state.machine["slice_ns"])
    tick_ns = state.machine["tick_ns"]
    if tick_ns > 0.0:
        offset = tick_ns * core.index / len(state.cores)
        at = math.ceil((at - offset) / tick_ns) * tick_ns + offset
    state.plan(at, SLICE, core.index, core.stamp)


def slice_over(state: State, core: Core, stamp: int) -> None:
    """Preempt a thread whose slice is over, if somebody waits for its core."""
    if stamp != core.stamp:
        return
    core.armed = False
    if state.ready:
        preempt(state, core, None)


def wake(state: State, thread: Thread, extra_ns: float) -> None:
    """Let a blocked thread become ready, after the kernel's time and `extra_ns`."""
    latency = "wake_other_ns" if state.idle else "wake_same_ns"
    thread.stamp += 1
    state.plan(state.now + (state.machine[latency] + extra_ns), WAKE, thread.index, thread.stamp)


def awake(state: State, thread: Thread, stamp: int) -> None:
    """Handle the end of a wake-up."""
    if stamp == thread.stamp and thread.place == BLOCKED:
        make_ready(state, thread)
