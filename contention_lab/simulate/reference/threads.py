"""Programs: what a thread does next once its phase is over; the GIL; channels.

The GIL is a lock like others, with two rules of its own: a thread takes it before computing what
needs it and lets go before it waits, sleeps or runs native code; and a waiter wakes up after each
switch interval, takes the GIL if it is free, and makes an owner that it has seen for all of the
interval give it up, which that does not get back before another thread has had it (`take_gil` and
`drop_gil` in CPython's ceval_gil.c).
"""

from __future__ import annotations

from contention_lab.simulate.packing import Op, OpFlag
from contention_lab.simulate.reference.cores import begin, leave, make_ready, wake, watch
from contention_lab.simulate.reference.locks import (
    WAITS,
    acquire,
    begin_wait,
    claim,
    park,
    poll,
    release,
    retry,
    spin_over,
)
from contention_lab.simulate.reference.state import (
    BLOCKED,
    CALLING,
    COMPUTE,
    ENDED,
    NEXT,
    PARKING,
    POLL,
    RETRY,
    RUNNING,
    SPIN,
    TAKE,
    Lock,
    Request,
    State,
    Thread,
)

STEPS_AT_ONCE = 1_000_000
"""A program that gets this far in no time at all will never end."""


def phase_over(state: State, thread: Thread, stamp: int) -> None:
    """Handle the end of a thread's phase."""
    if stamp != thread.stamp or thread.place != RUNNING:
        return
    state.settle(thread)
    go_on = True
    if thread.phase == SPIN:
        go_on = spin_over(state, thread)
    elif thread.phase == POLL:
        go_on = poll(state, thread)
    elif thread.phase == PARKING:
        demands, thread.demands = thread.demands, False
        go_on = park(state, thread)
        if demands and thread.parked:
            demand_gil(state)
    elif thread.phase == RETRY:
        go_on = retry(state, thread)
    if go_on:
        advance(state, thread)


def claim_over(state: State, lock: Lock) -> None:
    """Handle the end of a hand-off among spinners."""
    thread = claim(state, lock)
    if thread is not None:
        advance(state, thread)


def advance(state: State, thread: Thread) -> None:
    """Do the next steps of a running thread, up to the first that takes time."""
    thread.phase, thread.remaining = NEXT, 0.0
    for _ in range(STEPS_AT_ONCE):
        if thread.pending > 0.0:
            if state.gil is not None:
                if thread.pending_gil and not with_gil(state, thread):
                    return
                if not thread.pending_gil and not without_gil(state, thread):
                    return
            ns, thread.pending = thread.pending, 0.0
            begin(state, thread, COMPUTE, ns)
            return
        if thread.pc == thread.stop:
            if not next_item(state, thread):
                return
            continue
        code, flags, spread, target, ns = state.ops[thread.pc]
        if code == Op.COMPUTE:
            thread.pc += 1
            thread.pending = state.duration(thread, ns, spread)
            thread.pending_gil = bool(flags & OpFlag.GIL)
        elif code == Op.SLEEP:
            if not without_gil(state, thread):
                return
            thread.pc += 1
            leave(state, thread, BLOCKED)
            wake(state, thread, state.duration(thread, ns, spread))
            return
        elif code == Op.ACQUIRE:
            needs_gil = state.gil is not None and state.locks[target].gil_first
            if needs_gil and not with_gil(state, thread):
                return
            thread.pc += 1
            if flags & OpFlag.SHARD:
                thread.shard = target + draw_shard(state, thread, int(ns), spread)
                target = thread.shard
            if thread.asked_at < 0.0:
                thread.asked_at = state.now
            cost = acquire(state, thread, state.locks[target], bool(flags & OpFlag.READ))
            if cost > 0.0:
                begin(state, thread, TAKE, cost)
            if cost > 0.0 or cost == WAITS:
                return
        elif code == Op.RELEASE:
            thread.pc += 1
            lock = state.locks[thread.shard if flags & OpFlag.SHARD else target]
            cost = release(state, thread, lock, bool(flags & OpFlag.READ))
            if cost > 0.0:
                begin(state, thread, CALLING, cost)
                return
        elif code in (Op.CALL, Op.POST):
            if code == Op.CALL and not without_gil(state, thread):
                return
            thread.pc += 1
            if thread.asked_at < 0.0:
                thread.asked_at = state.now
            ns = state.duration(thread, ns, spread)
            if send(state, thread, state.locks[target], ns, code == Op.CALL):
                return
        elif code == Op.SERVE:
            if not serve(state, thread, state.locks[target], bool(flags & OpFlag.GIL)):
                return
        else:
            thread.pc += 1
            finish(state, thread)
    state.machine["events_limit"] = state.handled


def next_item(state: State, thread: Thread) -> bool:
    """Take the next piece of work; False, and the thread ends, where there is none."""
    first, last, endless, _ = state.queues[thread.queue]
    if state.taken[thread.queue] == last and endless:
        state.taken[thread.queue] = first
    if state.taken[thread.queue] < last:
        thread.pc, thread.stop = state.items[state.taken[thread.queue]]
        state.taken[thread.queue] += 1
        return True
    if thread.has_gil:
        assert state.gil is not None
        release(state, thread, state.gil, False)
    state.unfinished -= 1
    state.results.threads[thread.index]["end_ns"] = state.now
    leave(state, thread, ENDED)
    return False


def draw_shard(state: State, thread: Thread, shards: int, first_share: int) -> int:
    """Draw one of several locks: the first with a share in thousandths, the others alike."""
    share = first_share / 1000.0
    draw = state.thread_random(thread)
    if draw < share or shards == 1:
        return 0
    return min(1 + int((draw - share) / (1.0 - share) * (shards - 1)), shards - 1)


def finish(state: State, thread: Thread) -> None:
    """Count one operation, and the time since it first asked for something shared."""
    row = state.results.threads[thread.index]
    row["finished"] += 1
    if thread.asked_at >= 0.0:
        row["response_ns"] += state.now - thread.asked_at
        state.book_response(state.now - thread.asked_at)
        thread.asked_at = -1.0


def with_gil(state: State, thread: Thread) -> bool:
    """Tell whether a thread may run Python code now; if not, it will be advanced again."""
    gil = state.gil
    assert gil is not None
    if thread.has_gil:
        return not (gil.drop and let_go(state, thread, gil))
    if thread.asked_at < 0.0:
        thread.asked_at = state.now
    cost = acquire(state, thread, gil, False)
    if cost > 0.0:
        begin(state, thread, TAKE, cost)
    return cost == 0.0


def without_gil(state: State, thread: Thread) -> bool:
    """Tell whether a thread is rid of the GIL; if not, it will be advanced again."""
    if not thread.has_gil:
        return True
    assert state.gil is not None
    cost = release(state, thread, state.gil, False)
    if cost > 0.0:
        begin(state, thread, CALLING, cost)
    return cost == 0.0


def let_go(state: State, thread: Thread, gil: Lock) -> bool:
    """Give up the GIL and queue up for it; False if nobody else wants it."""
    gil.drop = False
    if not gil.waiters and not gil.waking:
        return False
    cost = release(state, thread, gil, False)
    gil.barred = thread
    begin_wait(state, thread, gil, False, cost)
    return True


def demand_gil(state: State) -> None:
    """Ask the owner of the GIL to let go."""
    assert state.gil is not None
    owner = state.gil.owner
    if owner is None:
        return
    state.gil.drop = True
    if owner.place == RUNNING and owner.phase == COMPUTE:
        state.settle(owner)
        owner.pending, owner.pending_gil = owner.remaining, True
        owner.stamp += 1
        advance(state, owner)


def interval_over(state: State, thread: Thread) -> None:
    """Wake a thread that has waited for the GIL for a whole interval: it looks for itself."""
    assert state.gil is not None
    gil: Lock = state.gil
    thread.watched = False
    waits = thread.lock is gil
    if not waits or not thread.parked:
        return
    if state.now < thread.demand_at:
        watch(state, thread, thread.demand_at)
        return
    if gil.barred is thread:
        watch(state, thread, state.now + state.machine["gil_interval_ns"])
        return
    gil.waiters.remove(thread)
    thread.parked, thread.timed_out = False, True
    thread.phase, thread.remaining = RETRY, 0.0
    wake(state, thread, 0.0)


def send(state: State, thread: Thread, channel: Lock, ns: float, wants_reply: bool) -> bool:
    """Send a request; True if that takes the sender time."""
    state.results.locks["acquires"][channel.index] += 1
    channel.requests.append(Request(thread if wants_reply else None, ns, state.now))
    cost = channel.acquire_ns
    server = channel.idle_server
    if server is not None:
        channel.idle_server = None
        server.parked = False
        state.results.locks["wakes"][channel.index] += 1
        wake(state, server, channel.wake_extra_ns)
        cost += channel.wake_call_ns
    if wants_reply:
        thread.lock, thread.waiting_since = channel, state.now
        begin(state, thread, PARKING, cost + channel.park_ns)
        return True
    if cost > 0.0:
        begin(state, thread, CALLING, cost)
    return cost > 0.0


def serve(state: State, thread: Thread, channel: Lock, needs_gil: bool) -> bool:
    """Reply to the request that is done and begin the next; False if the server has to wait.

    The server's further steps follow the work, and come before its reply.
    """
    if thread.request is not None:
        done, thread.request, thread.serves = thread.request, None, None
        state.book_busy(channel)
        if done.client is not None:
            done.client.lock = None
            if done.client.parked:
                done.client.parked = False
                done.client.phase, done.client.remaining = NEXT, 0.0
                wake(state, done.client, channel.wake_extra_ns)
                if channel.wake_call_ns > 0.0:
                    begin(state, thread, CALLING, channel.wake_call_ns)
                    return False
    if not channel.requests:
        if not without_gil(state, thread):
            return False
        channel.idle_server = thread
        thread.parked = True
        state.results.locks["parks"][channel.index] += 1
        leave(state, thread, BLOCKED)
        return False
    thread.request, thread.serves = channel.requests.popleft(), channel
    waited = state.now - thread.request.sent_at
    row = state.results.locks[channel.index]
    row["contended"] += waited > 0.0
    row["wait_ns"] += waited
    row["longest_wait_ns"] = max(row["longest_wait_ns"], waited)
    if thread.request.client is not None:
        state.results.threads[thread.request.client.index]["wait_ns"] += waited
    channel.busy_since = state.now
    thread.pending, thread.pending_gil = thread.request.ns, needs_gil
    thread.pc += 1
    return True


def start_all(state: State) -> None:
    """Make every thread ready, in order."""
    for thread in state.threads:
        make_ready(state, thread)
