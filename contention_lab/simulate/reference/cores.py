"""The scheduler: cores, one queue of ready threads, slices, switches and wake-ups.

As Linux' since 6.6 (EEVDF: Stoica and Abdel-Wahab 1995; kernel/sched/fair.c), with one queue for
all cores and threads of one weight. A thread is promised a slice, and has its deadline once it has
been given so much CPU time (`vruntime`). Next comes the earliest deadline of those that have had no
more than the average (`pick_eevdf`); a slice ends at a tick (`update_deadline`). Sleeping gains
nobody anything: who had less than the average is owed as much when it wakes up (`place_entity`, at
most two slices), and who had more goes on with what is left of its slice, unless the others have
caught up meanwhile (delayed dequeue, 6.12). A woken thread takes the core of one that has had its
protected time, if its own deadline comes first (`check_preempt_wakeup_fair`, RUN_TO_PARITY). CFS
before that has another formula, and the same outcome: vruntime outlives short sleeps.

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
    SWITCH,
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


def watch(state: State, thread: Thread, at: float) -> None:
    """Plan to see at that time whether a thread still waits for the GIL.

    Most waits are over long before: an event for each would fill the queue of events, so there is
    one for each thread, which is put off.
    """
    thread.demand_at = at
    if not thread.watched:
        thread.watched = True
        state.plan(at, SWITCH, thread.index, 0)


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
    state.running += 1
    state.virtual_sum -= thread.began
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
    state.running -= 1
    state.virtual_sum += thread.began
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
    thread.lag = 0.0
    if state.ready:
        most = 2.0 * state.machine["slice_ns"]
        thread.lag = min(most, max(-most, average_vruntime(state) - thread.vruntime))
    state.runnable -= 1
    state.virtual_sum -= thread.vruntime
    if state.ready:
        start(state, core, ready_pop(state))
    else:
        state.idle += 1


def preempt(state: State, core: Core, successor: Thread | None) -> None:
    """Send a core's thread to the end of the queue; the successor, or who is next, runs."""
    thread = stop(state, core)
    thread.place, thread.ready_since = READY, state.now
    state.results.totals["preemptions"] += 1
    state.ready.append(thread)
    start(state, core, ready_pop(state) if successor is None else successor)


def make_ready(state: State, thread: Thread) -> None:
    """Let a blocked thread run: on an idle core, in place of another, or in its turn."""
    thread.place, thread.ready_since = READY, state.now
    place_among(state, thread)
    if state.idle:
        state.idle -= 1
        core = state.cores[max(thread.last_core, 0)]
        if core.thread is not None:
            core = next(core for core in state.cores if core.thread is None)
        start(state, core, thread)
        return
    if state.machine["preempt_after_ns"] < INF:
        core = min(state.cores, key=lambda core: core.since)  # the first one among equals
        if takes_core(state, core, thread):
            preempt(state, core, thread)
            if len(state.ready) == 1:
                arm_all(state)
            return
    state.ready.append(thread)
    if len(state.ready) == 1:
        arm_all(state)


def place_among(state: State, thread: Thread) -> None:
    """Say what a thread that was asleep has had, among those that went on meanwhile."""
    slice_ns = state.machine["slice_ns"]
    if state.runnable:
        average = average_vruntime(state)
        if thread.lag >= 0.0 or thread.vruntime <= average:
            owed = max(thread.lag, 0.0)
            thread.vruntime = average - owed * (1.0 + 1.0 / state.runnable)
            thread.deadline = thread.vruntime + slice_ns
    if thread.vruntime >= thread.deadline:
        thread.deadline = thread.vruntime + slice_ns
    state.runnable += 1
    state.virtual_sum += thread.vruntime


def takes_core(state: State, core: Core, thread: Thread) -> bool:
    """Tell whether a thread that has just woken up takes the core that has run one longest."""
    if state.now - core.since < state.machine["preempt_after_ns"]:
        return False
    current = core.thread
    assert current is not None
    renew(state, current)
    return thread.vruntime <= average_vruntime(state) and thread.deadline < current.deadline


def average_vruntime(state: State) -> float:
    """Return the CPU time that a runnable thread has been given by now, on average."""
    return (state.virtual_sum + state.running * state.now) / state.runnable


def next_ready(state: State) -> Thread:
    """Return the ready thread that comes next.

    It is the one whose promise ends first, of those that have had no more than the average, or of
    all where those are on cores.
    """
    average = average_vruntime(state)
    return min(state.ready, key=lambda thread: (thread.vruntime > average, thread.deadline))


def ready_pop(state: State) -> Thread:
    """Take the ready thread that comes next out of the queue."""
    thread = next_ready(state)
    state.ready.remove(thread)
    return thread


def renew(state: State, thread: Thread) -> None:
    """Promise the next slice to a running thread that has used up its own, to the nanosecond."""
    state.settle(thread)
    over, slice_ns = thread.vruntime - thread.deadline, state.machine["slice_ns"]
    if over >= slice_ns:
        thread.deadline += (math.floor(over / slice_ns) + 1.0) * slice_ns  # nobody was there to see
    elif over >= -1.0:
        thread.deadline = thread.vruntime + slice_ns


def arm_all(state: State) -> None:
    """Plan the ends of slices: somebody waits for a core."""
    for core in state.cores:
        arm(state, core)


def arm(state: State, core: Core) -> None:
    """Plan the end of a slice: at the first tick after it is used up."""
    if core.armed:
        return
    core.armed = True
    assert core.thread is not None
    renew(state, core.thread)
    at = max(state.now, core.thread.began + (core.thread.deadline - core.thread.vruntime))
    tick_ns = state.machine["tick_ns"]
    if tick_ns > 0.0:
        offset = tick_ns * core.index / len(state.cores)
        at = math.ceil((at - offset) / tick_ns) * tick_ns + offset
    state.plan(at, SLICE, core.index, core.stamp)


def slice_over(state: State, core: Core, stamp: int) -> None:
    """Promise the next slice to a thread whose slice is over; it goes on if nobody comes first."""
    if stamp != core.stamp:
        return
    core.armed = False
    if not state.ready:
        return
    thread = core.thread
    assert thread is not None
    renew(state, thread)
    average, first = average_vruntime(state), next_ready(state)
    if (first.vruntime > average, first.deadline) <= (thread.vruntime > average, thread.deadline):
        preempt(state, core, None)
    else:
        arm(state, core)


def wake(state: State, thread: Thread, extra_ns: float) -> None:
    """Let a blocked thread become ready, after the kernel's time and `extra_ns`."""
    latency = "wake_other_ns" if state.idle else "wake_same_ns"
    thread.stamp += 1
    state.plan(state.now + (state.machine[latency] + extra_ns), WAKE, thread.index, thread.stamp)


def awake(state: State, thread: Thread, stamp: int) -> None:
    """Handle the end of a wake-up."""
    if stamp == thread.stamp and thread.place == BLOCKED:
        make_ready(state, thread)
