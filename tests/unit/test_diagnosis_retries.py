"""Failed tries at a lock: a loop that naps between them, or rounds that are left to others."""

from __future__ import annotations

import pytest

from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import Call, Outcome, State, TraceBuilder, WaitFlag, parse

MS = 1_000_000
TURNS = 30


def retries(*, nap: int, pause: int) -> Diagnosis:
    """Threads that take a lock for 2 ms every 60: 30 ms after the first failed try, by the third.

    Parameters
    ----------
    nap, pause
        The line at which they sleep after a failed try, and otherwise.
    """
    builder = TraceBuilder(meta={"machine": {"cores": 2}}, duration_ns=60 * TURNS * MS)
    site = builder.add_frame("take", "/src/job.py", 3)
    lock = builder.add_lock("threading.Lock", name="flag", site=site)
    stack = builder.add_stack(site)
    sleeping = {
        line: builder.add_stack(builder.add_frame("patrol", "/src/job.py", line))
        for line in {nap, pause}
    }
    threads = [builder.add_thread(f"worker {k}") for k in range(2)]
    for start in range(0, TURNS * 60 * MS, 60 * MS):
        for at, thread in enumerate(threads):
            got = start + (30 + 2 * at) * MS
            builder.add_wait(
                lock,
                thread,
                start,
                got,
                stack=stack,
                outcome=Outcome.FAILED_TRY,
                flags=int(WaitFlag.SERIES),
                spins=3,
                park_ns=got - start,
            )
            builder.add_hold(lock, thread, got, got + 2 * MS, site=site, stack=stack)
            for moment in range(start + MS, start + 60 * MS, 5 * MS):
                if got <= moment < got + 2 * MS:
                    continue
                line = nap if moment < got else pause
                builder.add_state(
                    moment, thread, State.BLOCKED, call=Call.SLEEP, stack=sleeping[line]
                )
    for thread in threads:
        builder.add_counter(
            lock,
            thread,
            acquires=TURNS,
            failed_tries=3 * TURNS,
            wait_ns=TURNS * 30 * MS,
            hold_ns=TURNS * 2 * MS,
        )
    builder.set_status(process_cpu_ns=100 * MS)
    return diagnose(parse(builder.bytes()))


def test_naps_that_are_only_taken_after_a_failed_try_are_polling() -> None:
    assert retries(nap=5, pause=9).verdict == "busy-polling"


@pytest.mark.parametrize("line", [5, 9])
def test_a_pause_that_is_made_whether_the_lock_was_taken_or_not_is_no_polling(line: int) -> None:
    diagnosis = retries(nap=line, pause=line)

    assert diagnosis.verdict == "healthy"
    assert "found `flag` taken 180 times, and went on with something else" in diagnosis.summary
