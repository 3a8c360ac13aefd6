"""A recording made by hand: threads that take turns at one lock without a gap between them."""

from __future__ import annotations

from contention_lab.trace.builder import TraceBuilder
from contention_lab.trace.schema import State

US = 1_000
TURNS, THINK, HOLD = 40, 300 * US, 200 * US


def queue_of_workers(threads: int = 4, *, gil: bool = False, sampled: bool = False) -> TraceBuilder:
    """Return threads that each think, then hold the lock, which is never free after that.

    Parameters
    ----------
    threads
        How many.
    gil
        Whether there was a GIL.
    sampled
        Whether the recorder looked at what threads did.
    """
    cycle = threads * HOLD
    end = THINK + TURNS * cycle
    builder = TraceBuilder(
        meta={"python": {"gil": gil}, "machine": {"cores": 8}}, duration_ns=end + 50 * US
    )
    site = builder.add_frame("Store.put", "/src/store.py", 12)
    lock = builder.add_lock("threading.Lock", name="store")
    for place in range(threads):
        last = THINK + place * HOLD + (TURNS - 1) * cycle + HOLD
        work = TURNS * (THINK + HOLD)
        thread = builder.add_thread(f"worker-{place}", end_ns=last, cpu_ns=work)
        stack = builder.add_stack(site)
        for turn in range(TURNS):
            start = THINK + place * HOLD + turn * cycle
            asked = start if turn == 0 else start - cycle + HOLD + THINK
            if turn == 0:
                asked = THINK
            if asked < start:
                builder.add_wait(lock, thread, asked, start, stack=stack)
            builder.add_hold(
                lock, thread, start, start + HOLD, site=site, stack=stack, waiters=1, cpu_ns=HOLD
            )
        builder.add_counter(
            lock,
            thread,
            acquires=TURNS,
            contended=TURNS,
            hold_ns=TURNS * HOLD,
            wait_ns=max(0, last - work),
            park_ns=max(0, last - work),
        )
    if sampled:
        for place in range(threads):
            for look in range(0, end, 500 * US):
                builder.add_state(look, place + 1, int(State.RUNNABLE))
    return builder
