"""Findings about trying, polling, retaking and locking too often; and when they are silent."""

from __future__ import annotations

from typing import Any

import pytest

from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import (
    Call,
    HoldFlag,
    Outcome,
    State,
    TraceBuilder,
    WaitFlag,
    WaitKind,
    parse,
)

MS = 1_000_000
CORES = {"machine": {"cores": 2}}


# spin-collapse, by failed tries


def tries(
    *,
    holder: State = State.AWAITS_GIL,
    spin_cpu: float = 0.9,
    held: float = 0.95,
    count: int = 10**6,
) -> Diagnosis:
    """Three threads that try in a loop for 20 ms at a time while a fourth holds."""
    builder = TraceBuilder(meta=CORES, duration_ns=1000 * MS)
    made = builder.add_frame("<module>", "/src/job.py", 3)
    spin, work = (
        builder.add_frame("spin", "/src/job.py", 8),
        builder.add_frame("f", "/src/job.py", 9),
    )
    lock = builder.add_lock("threading.Lock", name="flag", site=made)
    threads = [builder.add_thread(f"worker {k}") for k in range(4)]
    stack, working = builder.add_stack(spin), builder.add_stack(work)
    for turn in range(50):
        start, owner = turn * 20 * MS, threads[turn % 4]
        end = start + 20 * MS
        builder.add_hold(
            lock, owner, start, start + round(20 * MS * held), site=work, stack=working
        )
        for at in range(round(20 * held)):
            builder.add_state(start + at * MS, owner, holder)
            builder.add_gil_sample(start + at * MS + 1000, threads[(turn + 1) % 4])
        for thread in threads:
            if thread != owner:
                builder.add_wait(
                    lock,
                    thread,
                    start,
                    end,
                    stack=stack,
                    holder=owner,
                    holder_site=work,
                    holder_stack=working,
                    outcome=Outcome.FAILED_TRY,
                    flags=int(WaitFlag.SERIES),
                    spins=count // 150,
                    spin_ns=end - start,
                    spin_cpu_ns=round((end - start) * spin_cpu / 3),
                )
    for thread in threads:
        builder.add_counter(
            lock,
            thread,
            acquires=13,
            failed_tries=count // 4,
            wait_ns=750 * MS,
            spin_ns=750 * MS,
            spin_cpu_ns=round(250 * MS * spin_cpu),
        )
    builder.set_status(process_cpu_ns=1000 * MS)
    return diagnose(parse(builder.bytes()))


def test_tries_in_a_loop_that_keep_the_gil_from_the_holder_are_a_collapse() -> None:
    diagnosis = tries()

    finding = diagnosis.findings[0]
    assert diagnosis.verdict == finding.kind == "spin-collapse"
    assert finding.severity == pytest.approx(0.95, abs=0.02)
    assert [party.site.function for party in finding.culprits if party.site] == ["spin"]
    assert [remedy.kind for remedy in finding.remedies] == ["block"]
    assert "trying again and again without blocking" in finding.summary
    assert "waits for the GIL or a CPU for 100 % of that" in finding.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"holder": State.BLOCKED},  # the holder sleeps of its own will
        {"spin_cpu": 0.1},  # the tries burn little
    ],
)
def test_tries_that_do_not_slow_the_holder_are_no_collapse(changes: dict[str, Any]) -> None:
    assert "spin-collapse" not in {finding.kind for finding in tries(**changes).findings}


# busy-polling


def test_trying_again_long_after_the_lock_is_free_is_polling() -> None:
    diagnosis = tries(holder=State.BLOCKED, spin_cpu=0.01, held=0.1)

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "busy-polling"
    assert [party.site.function for party in finding.culprits if party.site] == ["spin"]
    assert "held only during 10 % of that" in finding.summary


def test_a_few_tries_are_no_polling() -> None:
    assert tries(holder=State.BLOCKED, spin_cpu=0.01, held=0.1, count=75).verdict == "healthy"


def few_tries(*, call: Call = Call.SLEEP, turns: int = 15) -> Diagnosis:
    """Two threads that try three times each in 30 ms, and sleep (or do something else) between."""
    builder = TraceBuilder(meta=CORES, duration_ns=1000 * MS)
    frames = [builder.add_frame(name, "/src/job.py", 3 + at) for at, name in enumerate("mhw")]
    lock = builder.add_lock("threading.Lock", name="flag", site=frames[0])
    holder = builder.add_thread("holder")
    stack, working = builder.add_stack(frames[2]), builder.add_stack(frames[1])
    others = [builder.add_thread(f"worker {k}") for k in range(2)]
    for start in range(0, turns * 60 * MS, 60 * MS):
        builder.add_hold(lock, holder, start, start + 2 * MS, site=frames[1], stack=working)
        for thread in others:
            builder.add_wait(
                lock,
                thread,
                start,
                start + 30 * MS,
                stack=stack,
                holder=holder,
                holder_stack=working,
                outcome=Outcome.FAILED_TRY,
                flags=int(WaitFlag.SERIES),
                spins=3,
                park_ns=30 * MS,
            )
            for at in range(1, 30, 5):
                builder.add_state(start + at * MS, thread, State.BLOCKED, call=int(call))
    for thread in others:
        builder.add_counter(lock, thread, failed_tries=3 * turns, wait_ns=turns * 30 * MS)
    builder.add_counter(lock, holder, acquires=turns, hold_ns=turns * 2 * MS)
    builder.set_status(process_cpu_ns=100 * MS)
    return diagnose(parse(builder.bytes()))


def test_few_tries_with_sleeps_between_them_are_polling() -> None:
    assert few_tries().verdict == "busy-polling"


def test_few_tries_with_something_else_between_them_are_no_polling() -> None:
    assert "busy-polling" not in {one.kind for one in few_tries(call=Call.SOCKET).findings}


def test_very_few_tries_are_no_polling_whatever_is_between_them() -> None:
    assert "busy-polling" not in {one.kind for one in few_tries(turns=3).findings}


def timeouts(
    *,
    timeout_ms: float = 0.2,
    looks: int = 1000,
    successes: int = 3,
    cpu_ms: int = 150,
    others_cpu_ms: int = 100,
) -> Diagnosis:
    """A thread that waits for an event with a timeout, again and again."""
    builder = TraceBuilder(meta=CORES, duration_ns=round(1500 * MS))
    made = builder.add_frame("<module>", "/src/job.py", 3)
    lock = builder.add_lock("threading.Lock in Event", name="ready", site=made)
    watch = builder.add_stack(builder.add_frame("watch", "/src/job.py", 12))
    thread = builder.add_thread("watcher", cpu_ns=cpu_ms * MS)
    builder.add_thread("worker", cpu_ns=others_cpu_ms * MS)
    for look in range(looks):
        builder.add_wait(
            lock,
            thread,
            look * MS,
            look * MS + round(timeout_ms * MS),
            stack=watch,
            kind=WaitKind.COORDINATION,
            outcome=Outcome.ACQUIRED if look < successes else Outcome.TIMED_OUT,
        )
    builder.set_status(process_cpu_ns=(cpu_ms + others_cpu_ms) * MS)
    return diagnose(parse(builder.bytes()))


def test_waiting_for_a_blink_at_a_time_is_polling() -> None:
    diagnosis = timeouts()

    finding = diagnosis.findings[0]
    assert diagnosis.verdict == finding.kind == "busy-polling"
    assert finding.evidence["looks_in_vain"] == 997
    assert [party.site.function for party in finding.victims if party.site] == ["watch"]
    assert "burns 60 % of the CPU time" in finding.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout_ms": 0.2, "looks": 50},  # now and then
        {"successes": 500},  # it finds something half of the time
        {"cpu_ms": 20, "others_cpu_ms": 400},  # it costs next to nothing
        {"looks": 1000, "cpu_ms": 900},  # it works in between
    ],
)
def test_waiting_with_a_timeout_is_mostly_fine(changes: dict[str, Any]) -> None:
    kinds = {finding.kind for finding in timeouts(**changes).findings}

    assert "busy-polling" not in kinds


def queue(
    *,
    gets: int = 5000,
    puts: int = 20,
    lock_type: str = "threading.Lock in Queue",
    readers: int = 1,
    method: str = "Queue.get",
) -> Diagnosis:
    builder = TraceBuilder(meta=CORES, duration_ns=1000 * MS)
    made = builder.add_frame("<module>", "/src/job.py", 3)
    lock = builder.add_lock(lock_type, name="inbox", site=made)
    receive = builder.add_stack(
        builder.add_frame(method, "/usr/lib/python3.11/queue.py", 150),
        builder.add_frame("receive", "/src/job.py", 20),
    )
    writer = builder.add_thread("writer", cpu_ns=10 * MS)
    builder.add_counter(lock, writer, acquires=puts)
    for number in range(readers):
        reader = builder.add_thread(f"reader {number}", cpu_ns=600 * MS // readers)
        builder.add_counter(lock, reader, acquires=gets)
        builder.add_state(5 * MS, reader, State.RUNNABLE, stack=receive)
    builder.set_status(process_cpu_ns=700 * MS)
    return diagnose(parse(builder.bytes()))


def test_looking_into_an_empty_queue_is_polling() -> None:
    diagnosis = queue()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "busy-polling"
    assert [party.site.function for party in finding.victims if party.site] == ["receive"]


def test_several_threads_that_look_into_one_empty_queue_are_polling() -> None:
    (finding,) = queue(readers=3).findings

    assert finding.kind == "busy-polling"
    assert finding.evidence["polling_threads"] == 3
    assert finding.evidence["looks_in_vain"] == 15_000 - 20


@pytest.mark.parametrize(
    "changes",
    [
        {"puts": 4000},
        {"gets": 80},
        {"lock_type": "threading.Lock"},
        {"method": "Queue.put"},  # it fills the queue that nobody empties yet
        {"method": "Queue.put", "readers": 3},
        {"method": "Logger.info", "readers": 3},  # one of them may feed the others
    ],
)
def test_a_queue_with_work_in_it_is_not_polled(changes: dict[str, Any]) -> None:
    assert queue(**changes).verdict == "healthy"


# unfair-lock


def retakes(
    *, owners: tuple[int, ...] = (1,), waiters: int = 2, other_acquires: int = 3
) -> Diagnosis:
    """A lock that goes from owner to owner every 2 ms while others wait all through."""
    builder = TraceBuilder(meta=CORES, duration_ns=400 * MS)
    made = builder.add_frame("Table.__init__", "/src/table.py", 3)
    insert = builder.add_frame("Table.insert", "/src/table.py", 8)
    lock = builder.add_lock("threading.Lock", name="table", site=made)
    stack = builder.add_stack(insert)
    threads = [builder.add_thread(f"thread {k}") for k in range(max(owners) + waiters)]
    for turn in range(200):
        owner = owners[turn % len(owners)]
        builder.add_hold(
            lock,
            owner,
            turn * 2 * MS,
            turn * 2 * MS + 1_990_000,
            site=insert,
            stack=stack,
            waiters=1,
        )
    for thread in threads:
        if thread not in owners:
            builder.add_wait(lock, thread, MS, 399 * MS, stack=stack, holder=1, holder_site=insert)
            builder.add_counter(
                lock, thread, acquires=other_acquires, contended=1, wait_ns=398 * MS
            )
    for owner in owners:
        builder.add_counter(lock, owner, acquires=200 // len(owners), hold_ns=400 * MS)
    builder.set_status(process_cpu_ns=100 * MS)
    return diagnose(parse(builder.bytes()))


def test_a_thread_that_takes_a_lock_past_all_that_wait_is_unfair() -> None:
    diagnosis = retakes()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "unfair-lock"
    assert finding.evidence["retakes"] == 199
    assert finding.evidence["fairness"] == pytest.approx(0.03, abs=0.02)
    assert "takes it again before any of them, 199 times in a row" in finding.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"owners": (1, 2)},  # two in turn: none takes it twice
        {"other_acquires": 200},  # all get it as often in the end: turns are long, not unequal
    ],
)
def test_taking_turns_is_not_unfair(changes: dict[str, Any]) -> None:
    assert "unfair-lock" not in {finding.kind for finding in retakes(**changes).findings}


# uncontended-overhead


def uncontended(
    *,
    acquires: int = 4_000_000,
    contended: int = 0,
    cost_ns: float | None = 60.0,
    cpu_ms: int = 1000,
    recursions: int = 0,
    taken_in: dict[str, int] | None = None,
) -> Diagnosis:
    meta = dict(CORES) if cost_ns is None else {**CORES, "acquire_cost_ns": cost_ns}
    builder = TraceBuilder(meta=meta, duration_ns=cpu_ms * MS)
    lock = builder.add_lock("threading.Lock", name="counter")
    thread = builder.add_thread("worker")
    builder.add_counter(lock, thread, acquires=acquires, contended=contended, recursions=recursions)
    enter = builder.add_frame("__enter__", "/usr/lib/python3.11/threading.py", 9)
    for line, (function, count) in enumerate((taken_in or {}).items()):
        stack = builder.add_stack(enter, builder.add_frame(function, "/src/sums.py", line))
        for at in range(count):
            facts = {"stack": stack, "flags": int(HoldFlag.UNCONTENDED)}
            builder.add_hold(lock, thread, at * MS, at * MS + 50, site=enter, **facts)
    builder.set_status(process_cpu_ns=cpu_ms * MS)
    return diagnose(parse(builder.bytes()))


def test_millions_of_free_acquires_are_an_overhead() -> None:
    diagnosis = uncontended()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "uncontended-overhead"
    assert finding.severity == pytest.approx(0.24)
    assert "4,000,000 times costs 240 ms, 24 % of the CPU time (60 ns each)" in (finding.summary)


def test_code_that_takes_a_free_lock_all_the_time_is_named_by_a_few_holds_of_it() -> None:
    (finding,) = uncontended(taken_in={"report": 3, "add": 27}).findings

    assert [(party.site.function, party.share) for party in finding.culprits if party.site] == [
        ("add", pytest.approx(0.9)),
        ("report", pytest.approx(0.1)),
    ]
    assert finding.victims == finding.culprits
    assert sum(party.thread_s for party in finding.culprits) == pytest.approx(0.24)
    assert "taking it 4,000,000 times in `add` and `report` costs 240 ms" in finding.summary


def test_taking_a_lock_again_counts_as_taking_it() -> None:
    (finding,) = uncontended(acquires=2_000_000, recursions=2_000_000).findings

    assert "4,000,000 times costs 240 ms" in finding.summary
    assert finding.evidence["recursions"] == 2_000_000


@pytest.mark.parametrize(
    "changes",
    [
        {"acquires": 1_000_000},  # 6 %
        {"contended": 100_000},  # the cost is that of waiting
        {"cost_ns": None},  # nobody measured it
        {"acquires": 200_000, "cpu_ms": 20},  # all of nothing
    ],
)
def test_locks_that_are_taken_now_and_then_cost_nothing(changes: dict[str, Any]) -> None:
    assert uncontended(**changes).verdict == "healthy"


# external-lock


def outside(
    *,
    call: Call = Call.FILE_LOCK,
    modules: tuple[str, ...] = (),
    threads: int = 4,
    share: float = 0.75,
    all_wait: int = 0,
) -> Diagnosis:
    """Threads of which one at a time is at work, and the others are blocked in a call.

    Of every 20 looks, at `all_wait` all of them are.
    """
    builder = TraceBuilder(meta={**CORES, "modules": list(modules)}, duration_ns=500 * MS)
    book = builder.add_stack(builder.add_frame("book", "/src/shop.py", 9))
    price = builder.add_stack(builder.add_frame("price", "/src/shop.py", 4))
    every = [builder.add_thread(f"clerk {k}") for k in range(threads)]
    for at in range(500):
        for thread in every:
            waits = at % 100 < share * 100 and thread != every[at // 10 % threads]
            waits |= at // 25 * 7 % 20 < all_wait
            kind = call if waits else Call.SLEEP
            builder.add_state(at * MS, thread, State.BLOCKED, call=kind)
            if at % 25 == 0:
                stack = book if waits else price
                builder.add_state(at * MS + 9, thread, State.BLOCKED, call=kind, stack=stack)
    builder.set_status(process_cpu_ns=20 * MS)
    return diagnose(parse(builder.bytes()))


def test_waiting_for_a_file_lock_is_waiting_outside_of_python() -> None:
    diagnosis = outside()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "external-lock"
    assert finding.lock is None
    assert finding.severity == pytest.approx(0.56, abs=0.05)
    assert [party.site.function for party in finding.victims if party.site] == ["book"]
    assert [party.site.function for party in finding.culprits if party.site] == ["price"]
    assert "4 threads wait in `book` for a file lock" in finding.summary


@pytest.mark.parametrize("call", [Call.FILE_LOCK, Call.NATIVE_SLEEP])
def test_where_all_wait_at_a_time_none_of_them_is_to_blame(call: Call) -> None:
    (finding,) = outside(call=call, modules=("sqlite3",), share=1.0, all_wait=15).findings

    assert finding.kind == "external-lock"
    assert [party.site.function for party in finding.victims if party.site] == ["book"]
    assert finding.culprits == ()
    assert " while " not in finding.summary


def test_who_waits_a_while_longer_than_the_lock_is_held_still_waits_for_its_holder() -> None:
    (finding,) = outside(
        call=Call.NATIVE_SLEEP, modules=("sqlite3",), share=1.0, all_wait=11
    ).findings

    assert [party.site.function for party in finding.culprits if party.site] == ["price"]


def test_sleeping_in_a_database_library_is_waiting_for_its_lock() -> None:
    assert outside(call=Call.NATIVE_SLEEP, modules=("sqlite3",)).verdict == "external-lock"


@pytest.mark.parametrize(
    "changes",
    [
        {"call": Call.NATIVE_SLEEP},  # it could be anything
        {"call": Call.READ},
        {"threads": 1, "share": 1.0},  # who would hold it?
        {"share": 0.05},
    ],
)
def test_without_evidence_of_a_lock_outside_none_is_claimed(changes: dict[str, Any]) -> None:
    assert outside(**changes).verdict == "healthy"


# tries that are no waiting


def skips(*, pause_ms: int, hold_ms: int = 12) -> Diagnosis:
    """Threads that leave a job to whoever has the lock, and look again after a pause."""
    builder = TraceBuilder(meta=CORES, duration_ns=2000 * MS)
    site = builder.add_frame("clean", "/src/job.py", 9)
    lock = builder.add_lock("threading.Lock", name="cleaning", site=site)
    stack = builder.add_stack(site)
    owner, *others = [builder.add_thread(f"thread {k}") for k in range(4)]
    tried = 0
    for turn in range(60):
        start = turn * 32 * MS
        builder.add_hold(lock, owner, start, start + hold_ms * MS, site=site, stack=stack)
        for thread in others:
            tried += hold_ms // pause_ms + 1
            builder.add_wait(
                lock,
                thread,
                start,
                start + max(hold_ms, pause_ms) * MS,
                stack=stack,
                holder=owner,
                holder_site=site,
                outcome=Outcome.FAILED_TRY,
                flags=int(WaitFlag.SERIES),
                park_ns=max(hold_ms, pause_ms) * MS,
            )
    builder.add_counter(lock, owner, acquires=60, hold_ns=60 * hold_ms * MS)
    builder.add_counter(
        lock, others[0], failed_tries=tried, wait_ns=180 * max(hold_ms, pause_ms) * MS
    )
    builder.set_status(process_cpu_ns=50 * MS)
    return diagnose(parse(builder.bytes()))


def test_leaving_a_job_to_others_is_not_waiting_for_them() -> None:
    kinds = {finding.kind for finding in skips(pause_ms=20).findings}

    assert not kinds & {"serialised-by-lock", "held-across-io", "slow-holder-elsewhere"}


def test_trying_many_times_within_a_hold_is_waiting_for_it() -> None:
    kinds = {finding.kind for finding in skips(pause_ms=1).findings}

    assert "serialised-by-lock" in kinds
