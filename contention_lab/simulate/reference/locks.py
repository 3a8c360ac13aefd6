"""Locks: acquiring, waiting, handing over.

A policy is a set of numbers (`packing.LOCKS`); what they mean is here. Nothing here advances a
program: a thread that got its lock has a phase to end, after which `threads.py` takes it on.
"""

from __future__ import annotations

from contention_lab.simulate.packing import Order, SpinEnd
from contention_lab.simulate.reference.cores import (
    begin,
    leave,
    offer,
    ready_pop,
    start,
    stop,
    wake,
    watch,
)
from contention_lab.simulate.reference.state import (
    BLOCKED,
    NEXT,
    PARKING,
    POLL,
    READY,
    RETRY,
    RUNNING,
    SPIN,
    TAKE,
    Lock,
    State,
    Thread,
)

WAITS = -1.0


def acquire(state: State, thread: Thread, lock: Lock, reading: bool) -> float:
    """Acquire a lock for a running thread.

    Returns
    -------
    float
        CPU time that acquiring costs, in ns; `WAITS` if the thread has to wait.
    """
    if can_take(lock, reading):
        return take(state, lock, thread, reading)
    begin_wait(state, thread, lock, reading, 0.0)
    return WAITS


def can_take(lock: Lock, reading: bool) -> bool:
    """Tell whether a newcomer may have the lock at once.

    One that others are about to take, it has to compete for: its atomic operation queues up for the
    cache line like theirs.
    """
    if reading:
        return lock.owner is None and lock.writers_waiting == 0
    return lock.is_free() and not lock.claimed


def take(state: State, lock: Lock, thread: Thread, reading: bool) -> float:
    """Make a thread the owner, and return what taking a free lock costs it, in ns."""
    row = state.results.locks[lock.index]
    row["acquires"] += 1
    if thread.lock is lock:
        waited = state.now - thread.waiting_since
        row["wait_ns"] += waited
        row["longest_wait_ns"] = max(row["longest_wait_ns"], waited)
        state.results.threads[thread.index]["gil_ns" if lock is state.gil else "wait_ns"] += waited
        thread.lock = None
    was_free = lock.is_free()
    if reading or lock.permits > 1:
        lock.readers += 1
    else:
        lock.owner = thread
        thread.held.append(lock)
    if was_free and not lock.is_free():
        lock.busy_since = state.now
    if lock is state.gil:
        thread.has_gil, lock.drop, lock.barred = True, False, None
    cost = lock.acquire_ns
    if lock.last is not thread:
        cost += lock.transfer_ns
        lock.last = thread
        lock.switches += 1
    return cost


def begin_wait(state: State, thread: Thread, lock: Lock, reading: bool, extra_ns: float) -> None:
    """Begin to wait, without the GIL."""
    state.results.locks["contended"][lock.index] += 1
    thread.lock, thread.reading, thread.waiting_since = lock, reading, state.now
    if lock is not state.gil and thread.has_gil:
        assert state.gil is not None
        extra_ns += release(state, thread, state.gil, False)
    if lock.order != Order.COMPETITIVE:
        lock.waiters.append(thread)
        if lock.order == Order.PHASE_FAIR and not reading:
            lock.writers_waiting += 1
    wait_more(state, thread, lock, extra_ns)


def wait_more(state: State, thread: Thread, lock: Lock, extra_ns: float) -> None:
    """Spin, back off or park, as the lock's policy says."""
    if lock.backoff_max_ns > 0.0:
        thread.backoff = lock.backoff_min_ns
        back_off(state, thread, lock, extra_ns)
    elif lock.spin_ns > 0.0 and not (lock.adaptive and not owner_runs(lock)):
        spin(state, thread, lock)
    else:
        begin(state, thread, PARKING, lock.park_ns + extra_ns)


def owner_runs(lock: Lock) -> bool:
    """Tell whether the owner is on a core; nobody owning it counts as well."""
    return lock.owner is None or lock.owner.place == RUNNING


def spin(state: State, thread: Thread, lock: Lock) -> None:
    """Spin for as long as the policy allows."""
    lock.spinners.append(thread)
    begin(state, thread, SPIN, lock.spin_ns)
    if lock.order == Order.COMPETITIVE and lock.is_free():
        offer(state, lock)


def back_off(state: State, thread: Thread, lock: Lock, extra_ns: float) -> None:
    """Look away for a random time around the present back-off."""
    lock.polling += 1
    delay = thread.backoff * (0.5 + state.thread_random(thread))
    begin(state, thread, POLL, delay + extra_ns)


def claim(state: State, lock: Lock) -> Thread | None:
    """Give a free lock to one of its spinners, each as likely; return it."""
    lock.claimed = False
    if not lock.is_free() or not lock.spinners:
        return None
    thread = lock.spinners[int(state.engine_random() * len(lock.spinners))]
    state.settle(thread)
    lock.spinners.remove(thread)
    thread.phase, thread.remaining = NEXT, 0.0
    if not gil_comes_first(state, thread, lock):
        take(state, lock, thread, False)  # the hand-off's time, already spent, was all it cost
    return thread


def spin_over(state: State, thread: Thread) -> bool:
    """Handle the end of a spinner's patience; True if it has the lock and goes on at once."""
    lock = _awaited(thread)
    lock.spinners.remove(thread)
    if lock.order == Order.COMPETITIVE and lock.is_free():
        return seize(state, thread, lock)
    if lock.spin_end == SpinEnd.PARK:
        begin(state, thread, PARKING, lock.park_ns)
    elif not state.ready:
        spin(state, thread, lock)
    else:
        core = state.cores[thread.core]
        thread.phase = NEXT
        stop(state, core)
        thread.phase, thread.remaining = SPIN, lock.spin_ns
        thread.deadline += state.machine["slice_ns"]  # as sched_yield does
        thread.place, thread.ready_since = READY, state.now
        state.ready.append(thread)
        start(state, core, ready_pop(state))
    return False


def poll(state: State, thread: Thread) -> bool:
    """Look again after a back-off; True if the thread has the lock and goes on at once."""
    lock = _awaited(thread)
    cost = lock.handoff_ns()
    lock.polling -= 1
    if lock.is_free():
        return seize(state, thread, lock, cost)
    thread.backoff = min(2.0 * thread.backoff, lock.backoff_max_ns)
    back_off(state, thread, lock, 0.0)
    return False


def park(state: State, thread: Thread) -> bool:
    """Go to sleep, unless the lock is free by now; True if the thread goes on at once."""
    lock = thread.lock
    if lock is None:
        return True  # a reply that came meanwhile
    if lock.order == Order.COMPETITIVE:
        if lock.is_free() and lock.barred is not thread:
            return seize(state, thread, lock)
        lock.waiters.append(thread)
    state.results.locks["parks"][lock.index] += 1
    thread.parked = True
    if state.gil is not None and lock is state.gil:
        thread.switches_seen = lock.switches
        watch(state, thread, state.now + state.machine["gil_interval_ns"])
    leave(state, thread, BLOCKED)
    return False


def retry(state: State, thread: Thread) -> bool:
    """Try again after having been woken; True if the thread has the lock and goes on at once."""
    lock = _awaited(thread)
    lock.waking -= not thread.timed_out
    if lock.is_free():
        return seize(state, thread, lock)
    thread.demands = thread.timed_out and lock.switches == thread.switches_seen
    wait_more(state, thread, lock, 0.0)
    return False


def seize(state: State, thread: Thread, lock: Lock, cost_ns: float | None = None) -> bool:
    """Take a free lock after a wait, for `cost_ns` or as usual; True if the thread can go on."""
    if gil_comes_first(state, thread, lock):
        return True
    usual_ns = take(state, lock, thread, False)
    cost = usual_ns if cost_ns is None else cost_ns
    if cost > 0.0:
        begin(state, thread, TAKE, cost)
        return False
    thread.phase, thread.remaining = NEXT, 0.0
    return True


def gil_comes_first(state: State, thread: Thread, lock: Lock) -> bool:
    """Tell whether a waiter has to take the GIL first; if so, it does its last step again."""
    if not lock.gil_first or state.gil is None or thread.has_gil:
        return False
    row = state.results.locks[lock.index]
    waited = state.now - thread.waiting_since
    row["wait_ns"] += waited
    row["contended"] -= row["contended"] > 0
    state.results.threads[thread.index]["wait_ns"] += waited
    thread.lock = None
    thread.pc -= 1
    return True


def release(state: State, thread: Thread, lock: Lock, reading: bool) -> float:
    """Release a lock and see to its waiters; return the CPU time it costs, in ns."""
    drop_ownership(state, thread, lock, reading)
    if lock.order == Order.COMPETITIVE:
        if lock.spinners:
            offer(state, lock)
        if lock.waiters and lock.waking < lock.wakes_at_once:
            lock.waking += 1
            woken = lock.waiters.popleft()
            woken.parked = woken.timed_out = False
            woken.phase, woken.remaining = RETRY, 0.0
            state.results.locks["wakes"][lock.index] += 1
            wake(state, woken, lock.wake_extra_ns)
            return lock.release_ns + lock.wake_call_ns
        return lock.release_ns
    if not lock.is_free() or not lock.waiters:
        return lock.release_ns
    if lock.order == Order.FIFO:
        return lock.release_ns + grant(state, lock, lock.waiters.popleft())
    return lock.release_ns + admit(state, lock, after_writer=not reading)


def drop_ownership(state: State, thread: Thread, lock: Lock, reading: bool) -> None:
    """Make a lock free of one owner."""
    was_free = lock.is_free()
    if reading or lock.permits > 1:
        lock.readers -= 1
    else:
        lock.owner = None
        thread.held.remove(lock)
    if lock is state.gil:
        thread.has_gil = False
    if not was_free and lock.is_free():
        state.book_busy(lock)


def admit(state: State, lock: Lock, after_writer: bool) -> float:
    """Let the next phase in: all waiting readers after a writer, else the first writer."""
    writer = next((waiter for waiter in lock.waiters if not waiter.reading), None)
    readers = [waiter for waiter in lock.waiters if waiter.reading]
    if writer is not None and not (after_writer and readers):
        lock.waiters.remove(writer)
        lock.writers_waiting -= 1
        return grant(state, lock, writer)
    cost = 0.0
    for reader in readers:
        lock.waiters.remove(reader)
        cost += grant(state, lock, reader)
    return cost


def grant(state: State, lock: Lock, thread: Thread) -> float:
    """Hand the lock to a waiter, wherever it is; return what waking it costs the giver, in ns."""
    cost = lock.handoff_ns()
    take(state, lock, thread, thread.reading)
    if thread.parked:
        thread.parked = False
        thread.phase, thread.remaining = TAKE, cost
        state.results.locks["wakes"][lock.index] += 1
        wake(state, thread, lock.wake_extra_ns)
        return lock.wake_call_ns
    if thread.place == RUNNING:
        state.settle(thread)
        if thread.phase == SPIN:
            lock.spinners.remove(thread)
        begin(state, thread, TAKE, cost)
    else:
        thread.phase, thread.remaining = TAKE, cost
    return 0.0


def _awaited(thread: Thread) -> Lock:
    assert thread.lock is not None
    return thread.lock
