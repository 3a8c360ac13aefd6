"""Tries at a lock without blocking: threads that work in between, and threads that only nap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contention_lab.diagnosis import diagnose
from contention_lab.trace import Call, Outcome, State, TraceBuilder, WaitFlag, parse

if TYPE_CHECKING:
    from contention_lab.diagnosis import Diagnosis

MS = 1_000_000
TURNS = 50


def tries(*, cpu_us: int, napping: bool) -> Diagnosis:
    """Three threads get a lock for 4 ms each in 12 ms, by their fourth try: 8 ms after the first.

    Between tries they use so much CPU time, or nap, which they never do otherwise.
    """
    duration = TURNS * 12 * MS
    builder = TraceBuilder(meta={"machine": {"cores": 8}}, duration_ns=duration)
    taking, code, nap = (
        builder.add_frame(name, "/src/till.py", at)
        for name, at in (("take", 3), ("serve", 9), ("rest", 5))
    )
    lock = builder.add_lock("threading.Lock", name="till", site=taking)
    stacks = [builder.add_stack(one) for one in (taking, code, nap)]
    for place in range(3):
        thread = builder.add_thread(f"teller {place}", cpu_ns=TURNS * 4 * cpu_us * 1000)
        for turn in range(TURNS):
            begun = (turn * 12 + 4 * place) * MS
            got = begun + 8 * MS
            builder.add_wait(
                lock,
                thread,
                begun,
                got,
                stack=stacks[0],
                outcome=Outcome.FAILED_TRY,
                flags=int(WaitFlag.SERIES),
                spins=3,
                spin_cpu_ns=3 * cpu_us * 1000,
                spin_ns=8 * MS * (not napping),
                park_ns=8 * MS * napping,
            )
            builder.add_hold(lock, thread, got, got + 4 * MS, site=code, stack=stacks[1])
            for moment in range(begun, got, MS):
                state, call = (State.BLOCKED, Call.SLEEP) if napping else (State.RUNNABLE, 0)
                builder.add_state(moment + 500, thread, state, call=call)
                builder.add_state(moment + 900, thread, state, call=call, stack=stacks[2])
            for moment in range(got, got + 4 * MS, MS):
                builder.add_state(moment + 500, thread, State.BLOCKED, call=Call.READ)
                builder.add_state(
                    moment + 900, thread, State.BLOCKED, call=Call.READ, stack=stacks[1]
                )
        spent = TURNS * 3 * cpu_us * 1000
        builder.add_counter(
            lock,
            thread,
            acquires=TURNS,
            failed_tries=3 * TURNS,
            wait_ns=TURNS * 8 * MS,
            spin_cpu_ns=spent,
            spin_ns=TURNS * 8 * MS * (not napping),
            hold_ns=TURNS * 4 * MS,
        )
    builder.set_status(process_cpu_ns=3 * TURNS * 4 * cpu_us * 1000)
    return diagnose(parse(builder.bytes()))


def test_threads_that_nap_until_a_lock_is_free_wait_for_it() -> None:
    diagnosis = tries(cpu_us=20, napping=True)

    assert diagnosis.verdict == "held-across-io"
    assert diagnosis.findings[0].lock is not None
    assert diagnosis.findings[0].lock.name == "till"


def test_threads_that_work_where_they_find_a_lock_taken_do_not_wait_for_it() -> None:
    diagnosis = tries(cpu_us=2000, napping=False)

    assert diagnosis.findings == ()
    assert "went on with something else" in diagnosis.summary


def test_threads_that_do_nothing_but_try_do() -> None:
    assert tries(cpu_us=20, napping=False).verdict == "held-across-io"
