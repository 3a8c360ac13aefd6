"""A loop of failed tries that yields in between: what it waits for is the lock, not the GIL."""

from __future__ import annotations

import pytest

from contention_lab.analysis.gil_use import gil_use
from contention_lab.analysis.light_tries import gil_between_tries_ns, light_tries
from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import ChunkKind, Outcome, State, Trace, TraceBuilder, WaitFlag, parse

MS = 1_000_000
TURNS, TURN_MS = 50, 12


def yielding(*, cpu_each_us: int = 40) -> Trace:
    """Three threads take a lock for 4 ms in turn; the others try for it, and wait for the GIL.

    Two tries in each 8 ms, and a hold in between that no try met: it is not recorded by itself.
    """
    duration = TURNS * TURN_MS * MS
    builder = TraceBuilder(
        meta={"machine": {"cores": 2}, "switch_interval_s": 0.005}, duration_ns=duration
    )
    taking, code = (
        builder.add_frame(name, "/src/latch.py", at) for name, at in (("enter", 3), ("work", 9))
    )
    lock = builder.add_lock("threading.Lock", name="latch", site=taking)
    stacks = builder.add_stack(taking), builder.add_stack(code)
    threads = [builder.add_thread(f"worker {k}", cpu_ns=duration // 3) for k in range(3)]
    for turn in range(TURNS):
        for at, thread in enumerate(threads):
            begun = (turn * TURN_MS + 4 * at) * MS
            got = begun + 8 * MS
            builder.add_wait(
                lock,
                thread,
                begun,
                got,
                stack=stacks[0],
                outcome=Outcome.FAILED_TRY,
                flags=int(WaitFlag.SERIES),
                spins=2,
                spin_cpu_ns=2 * cpu_each_us * 1000,
                park_ns=8 * MS,
            )
            builder.add_layer_event(
                ChunkKind.GIL_WAITS,
                thread=thread,
                start_ns=begun,
                end_ns=got - MS,
                stack=stacks[0],
            )
            builder.add_layer_event(
                ChunkKind.GIL_HOLDS, thread=thread, start_ns=got, end_ns=got + 4 * MS
            )
            if turn % 5 == 0:
                builder.add_hold(lock, thread, got, got + 4 * MS, site=code, stack=stacks[1])
            for moment in range(got, got + 4 * MS, MS):
                builder.add_state(moment + 500, thread, State.RUNNABLE)
                builder.add_gil_sample(moment + 1000, thread)
    for thread in threads:
        builder.add_layer_event(
            ChunkKind.GIL_TOTALS,
            thread=thread,
            waits=TURNS,
            wait_ns=TURNS * 7 * MS,
            holds=TURNS,
            held_ns=TURNS * 4 * MS,
        )
        builder.add_counter(
            lock,
            thread,
            acquires=TURNS,
            failed_tries=2 * TURNS,
            wait_ns=TURNS * 8 * MS,
            hold_ns=TURNS * 4 * MS,
        )
    builder.set_status(process_cpu_ns=duration)
    return parse(builder.bytes())


def kinds(diagnosis: Diagnosis) -> set[str]:
    return {finding.kind for finding in diagnosis.findings}


def test_waiting_for_the_gil_to_try_again_is_waiting_for_the_lock() -> None:
    trace = yielding()
    use = gil_use(trace)

    assert use is not None
    assert sum(one.wait_s for one in use.threads) == pytest.approx(0.0)
    assert sum(one.core_wait_s for one in use.threads) == pytest.approx(0.0)
    assert gil_between_tries_ns(trace, [1]) == 3 * TURNS * 7 * MS
    assert gil_between_tries_ns(trace, [2]) == 0


def test_who_computes_between_tries_waits_for_the_gil() -> None:
    trace = yielding(cpu_each_us=800)
    use = gil_use(trace)

    assert use is not None
    assert sum(one.wait_s for one in use.threads) > 0.9
    assert not light_tries(trace)
    assert "gil-bound" in kinds(diagnose(trace))


def test_a_lock_that_is_tried_for_and_held_all_the_time_is_named() -> None:
    diagnosis = diagnose(yielding())

    assert diagnosis.verdict == "gil-masked-lock"
    assert "gil-bound" not in kinds(diagnosis)
    # 4 of 12 ms by each: while one does not hold it, it is held for all the rest. Only a fifth of
    # the holds is recorded by itself.
    blamed, waited = (diagnosis.findings[0].evidence[name] for name in ("blamed_s", "wait_s"))
    assert blamed == pytest.approx(waited, rel=0.03)
