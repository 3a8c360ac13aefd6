"""Findings about the GIL and the cores: when they are true, and above all when they are not."""

from __future__ import annotations

from typing import Any

import pytest

from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import Call, ChunkKind, Outcome, State, TraceBuilder, WaitFlag, parse

MS = 1_000_000


class Turns:
    """Threads that take turns at the GIL, 5 ms each, and some that come for it briefly.

    Each of the `light` ones is blocked for 5 ms of every 20 and waits for the GIL otherwise.
    """

    def __init__(
        self, *, hungry: int = 3, light: int = 0, wait: bool = True, samples: bool = True
    ) -> None:
        self.builder = builder = TraceBuilder(
            meta={"machine": {"cores": 2}, "switch_interval_s": 0.005}, duration_ns=600 * MS
        )
        parse_row = builder.add_stack(builder.add_frame("parse_row", "/src/rows.py", 4))
        serve = builder.add_stack(builder.add_frame("serve", "/src/web.py", 8))
        threads = [builder.add_thread(f"worker {k}") for k in range(hungry)]
        servers = [builder.add_thread(f"server {k}") for k in range(light)]
        for at in range(600):
            owner = threads[at // 5 % hungry] if threads else 0
            for thread in threads if samples else ():
                mine = thread == owner or not wait
                state = State.RUNNABLE if mine else State.AWAITS_GIL
                builder.add_state(at * MS, thread, state)
                if at % 50 == 0:
                    builder.add_state(at * MS + 9, thread, state, stack=parse_row)
            for thread in servers if samples else ():
                blocked = at % 20 < 5
                state = State.BLOCKED if blocked else State.AWAITS_GIL
                builder.add_state(at * MS, thread, state, call=Call.POLL if blocked else 0)
                if at % 50 == 0:
                    builder.add_state(at * MS + 9, thread, State.AWAITS_GIL, stack=serve)
            builder.add_gil_sample(at * MS + 1000, owner, held=owner != 0)
        builder.set_status(process_cpu_ns=600 * MS)

    def diagnosis(self) -> Diagnosis:
        return diagnose(parse(self.builder.bytes()))


# gil-bound


def test_threads_that_all_run_python_are_bound_by_the_gil() -> None:
    diagnosis = Turns().diagnosis()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "gil-bound"
    assert finding.lock is None
    assert finding.severity == pytest.approx(2 / 3, abs=0.01)
    assert [party.site.function for party in finding.victims if party.site] == ["parse_row"]
    assert [party.site.function for party in finding.culprits if party.site] == ["parse_row"]
    assert finding.remedies[0].speedup_high == pytest.approx(2.0)  # cores
    assert "3 threads run Python in `parse_row`, one at a time" in finding.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"hungry": 1},  # one alone
        {"wait": False},  # they do not wait for it: native work
        {"samples": False},  # nobody saw what they did
    ],
)
def test_without_two_that_wait_it_is_not_the_gil(changes: dict[str, Any]) -> None:
    assert Turns(**changes).diagnosis().verdict == "healthy"


def test_spinning_for_a_lock_is_not_called_bound_by_the_gil() -> None:
    turns = Turns()
    lock = turns.builder.add_lock("threading.Lock", name="flag")
    for thread in (1, 2):
        turns.builder.add_wait(
            lock,
            thread,
            0,
            500 * MS,
            outcome=Outcome.FAILED_TRY,
            flags=int(WaitFlag.SERIES),
            spin_ns=500 * MS,
            spin_cpu_ns=200 * MS,
            spins=1000,
        )
    kinds = {finding.kind for finding in turns.diagnosis().findings}

    assert not kinds & {"gil-bound", "gil-convoy"}


def test_a_lock_owned_by_threads_that_wait_for_the_gil_is_acquitted() -> None:
    # A woken thread has the lock at once and the GIL much later: the others wait for it meanwhile.
    turns = Turns()
    lock = turns.builder.add_lock("threading.Lock", name="statistics")
    for at in range(40):
        start = at * 15 * MS
        turns.builder.add_hold(lock, 1, start, start + 10 * MS, waiters=1)
        turns.builder.add_wait(lock, 1, start, start + 10 * MS, gil_ns=10 * MS)
        turns.builder.add_wait(lock, 2, start, start + 10 * MS, holder=1)
    diagnosis = turns.diagnosis()

    assert diagnosis.verdict == "gil-bound"
    assert all(finding.lock is None for finding in diagnosis.findings)


@pytest.mark.parametrize(
    ("users", "hold_ms", "named"), [(3, 150, True), (3, 10, False), (1, 400, False)]
)
def test_a_lock_that_covers_the_work_is_not_told_to_be_none(
    users: int, hold_ms: int, named: bool
) -> None:
    turns = Turns()
    lock = turns.builder.add_lock("threading.Lock", name="total")
    for thread in range(1, users + 1):
        turns.builder.add_counter(lock, thread, acquires=1000, hold_ns=hold_ms * MS)
    (finding,) = turns.diagnosis().findings

    assert finding.kind == "gil-bound"
    assert ("`total`" in finding.summary) is named
    assert ("No lock needs to change" in finding.remedies[0].text) is not named
    assert (finding.remedies[0].speedup_high < 1.5) is named
    assert len(finding.summary) <= 250


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("RWLock.write", True),
        ("RWLock.read", False),
        ("threading.BoundedSemaphore", False),
        ("concurrent.futures.ThreadPoolExecutor", False),
        ("concurrent.futures.ProcessPoolExecutor", False),
    ],
)
def test_what_many_hold_at_once_does_not_cover_their_work(kind: str, named: bool) -> None:
    turns = Turns()
    lock = turns.builder.add_lock(kind, name="total")
    for thread in (1, 2, 3):
        turns.builder.add_counter(lock, thread, acquires=50, hold_ns=150 * MS)
    (finding,) = turns.diagnosis().findings

    assert finding.kind == "gil-bound"
    assert ("`total`" in finding.summary) is named
    assert ("No lock needs to change" in finding.remedies[0].text) is not named


# gil-convoy


def test_threads_that_come_back_late_from_blocking_calls_are_a_convoy() -> None:
    diagnosis = Turns(hungry=1, light=2).diagnosis()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "gil-convoy"
    assert finding.severity == pytest.approx(0.5, abs=0.02)  # two of three, three quarters
    assert finding.evidence["wait_each_s"] == pytest.approx(0.015, abs=0.001)
    assert [party.site.function for party in finding.victims if party.site] == ["serve"]
    assert [party.site.function for party in finding.culprits if party.site] == ["parse_row"]


def test_without_a_thread_that_keeps_the_gil_there_is_no_convoy() -> None:
    kinds = [finding.kind for finding in Turns(hungry=0, light=3).diagnosis().findings]

    assert "gil-convoy" not in kinds


# native-oversubscription


def crowd(
    *, native: int = 7, python: int = 1, cores: int | None = 2, native_cpu: float = 0.9
) -> Diagnosis:
    """A process of which these many threads want a CPU."""
    meta = {} if cores is None else {"machine": {"cores": cores}}
    builder = TraceBuilder(meta=meta, duration_ns=1000 * MS)
    matmul = builder.add_stack(builder.add_frame("train", "/src/train.py", 6))
    thread = builder.add_thread("trainer")
    for at in range(0, 1000, 25):
        builder.add_load(
            at * MS,
            threads=1,
            runnable=python,
            native_threads=native,
            native_runnable=native,
            native_cpu_ns=round(at * MS * native_cpu * 2),
            delay_ns=at * MS * 5,
            involuntary=at,
        )
        builder.add_state(at * MS, thread, State.RUNNABLE, stack=matmul)
    builder.set_status(process_cpu_ns=2000 * MS)
    return diagnose(parse(builder.bytes()))


def test_more_native_threads_than_cores_are_too_many() -> None:
    diagnosis = crowd()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "native-oversubscription"
    assert finding.severity == pytest.approx(0.75, abs=0.01)
    assert finding.evidence["runnable_threads"] == pytest.approx(8.0)
    assert [party.site.function for party in finding.victims if party.site] == ["train"]
    assert "8.0 threads want a CPU at a time and there are 2 cores" in finding.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"cores": 8},  # enough for all
        {"cores": None},  # nobody knows
        {"native": 1},  # a pool as large as the machine, and its caller... on two cores
        {"native": 0, "python": 8},  # Python's own threads in native code
        {"native": 3, "python": 5},  # mostly those
        {"native_cpu": 0.1},  # they do next to nothing
    ],
)
def test_native_threads_that_fit_are_no_finding(changes: dict[str, Any]) -> None:
    assert crowd(**changes).verdict == "healthy"


# where the GIL's figures are from


def test_exact_events_name_both_sides_without_a_sample() -> None:
    builder = TraceBuilder(meta={"machine": {"cores": 2}}, duration_ns=600 * MS)
    stacks = [
        builder.add_stack(builder.add_frame(name, "/src/rows.py", 4)) for name in ("parse", "count")
    ]
    threads = [builder.add_thread(name) for name in ("a", "b")]
    for at in range(60):
        has, waits = threads[at % 2], threads[1 - at % 2]
        times = {"start_ns": at * 10 * MS, "end_ns": (at + 1) * 10 * MS}
        for kind, who in ((ChunkKind.GIL_HOLDS, has), (ChunkKind.GIL_WAITS, waits)):
            builder.add_layer_event(kind, thread=who, stack=stacks[who - 1], **times)
    for thread in threads:
        builder.add_layer_event(
            ChunkKind.GIL_TOTALS,
            thread=thread,
            waits=30,
            wait_ns=300 * MS,
            holds=30,
            held_ns=300 * MS,
        )
    builder.set_status(process_cpu_ns=600 * MS)
    diagnosis = diagnose(parse(builder.bytes()))

    (finding,) = diagnosis.findings
    assert finding.kind == "gil-bound"
    for side in (finding.victims, finding.culprits):
        assert {party.site.function: party.share for party in side if party.site} == {
            "parse": pytest.approx(0.5),
            "count": pytest.approx(0.5),
        }
    assert diagnosis.gil_source == "events"
    assert diagnosis.totals["gil_share"] == pytest.approx(1.0)
    assert diagnosis.totals["gil_wait_total_s"] == pytest.approx(0.6)


def test_waiting_for_a_core_with_the_gil_free_is_not_called_bound_by_the_gil() -> None:
    builder = TraceBuilder(meta={"machine": {"cores": 1}}, duration_ns=600 * MS)
    threads = [builder.add_thread(name) for name in ("a", "b")]
    for at in range(60):  # each has it for 1 ms after 18 for which nobody had it
        start = at * 10 * MS
        has = threads[at % 2]
        builder.add_layer_event(
            ChunkKind.GIL_WAITS, thread=has, start_ns=max(0, start - 10 * MS), end_ns=start + 8 * MS
        )
        builder.add_layer_event(
            ChunkKind.GIL_HOLDS, thread=has, start_ns=start + 8 * MS, end_ns=start + 9 * MS
        )
    for thread in threads:
        builder.add_layer_event(
            ChunkKind.GIL_TOTALS, thread=thread, waits=30, wait_ns=540 * MS, held_ns=30 * MS
        )
    builder.set_status(process_cpu_ns=60 * MS)

    assert diagnose(parse(builder.bytes())).findings == ()


def displaced(*, takings: int) -> Diagnosis:
    """Two threads wait for the GIL while one that has it is off its core most of the time."""
    builder = TraceBuilder(meta={"machine": {"cores": 2}}, duration_ns=600 * MS)
    names = ("compact", "write", "write")
    stacks = [builder.add_stack(builder.add_frame(name, "/src/store.py", 4)) for name in names]
    holder, *others = (builder.add_thread(name) for name in names)
    for at in range(30):
        start = at * 20 * MS
        builder.add_layer_event(
            ChunkKind.GIL_HOLDS, thread=holder, start_ns=start, end_ns=start + 12 * MS,
            stack=stacks[0],
        )  # fmt: skip
        for other in others:
            builder.add_layer_event(
                ChunkKind.GIL_WAITS, thread=other, start_ns=start, end_ns=start + 12 * MS,
                stack=stacks[1],
            )  # fmt: skip
        builder.add_state(start, holder, State.RUNNABLE, cpu_ns=at * 2 * MS, delay_ns=at * 18 * MS)
    builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=holder, holds=takings, held_ns=360 * MS)
    for other in others:
        builder.add_layer_event(
            ChunkKind.GIL_TOTALS, thread=other, waits=30, wait_ns=360 * MS, holds=30, held_ns=MS
        )
    builder.set_status(process_cpu_ns=60 * MS)
    return diagnose(parse(builder.bytes()))


def test_a_thread_that_computes_makes_a_convoy_however_busy_the_machine_is() -> None:
    (finding,) = displaced(takings=30).findings
    assert finding.kind == "gil-convoy"
    assert [party.site.function for party in finding.culprits if party.site] == ["compact"]


def test_a_thread_whose_core_is_taken_away_is_not_blamed_for_keeping_the_gil() -> None:
    assert displaced(takings=120).verdict == "healthy"


@pytest.mark.parametrize(("cpu_ms", "kind"), [(20, "gil-convoy"), (150, "gil-bound")])
def test_a_core_taken_away_does_not_make_a_thread_keep_the_gil(cpu_ms: int, kind: str) -> None:
    # It has the GIL 5 ms at a time, and runs for 0.7 or all of that; another one computes.
    builder = TraceBuilder(
        meta={"machine": {"cores": 2}, "switch_interval_s": 0.005}, duration_ns=600 * MS
    )
    stack = builder.add_stack(builder.add_frame("ask", "/src/client.py", 4))
    asking = builder.add_thread("client", cpu_ns=cpu_ms * MS)
    counting = builder.add_thread("statistics", cpu_ns=200 * MS)
    add = builder.add_layer_event
    for at in range(30):
        start = at * 20 * MS
        add(
            ChunkKind.GIL_HOLDS,
            thread=counting,
            start_ns=start,
            end_ns=start + 14 * MS,
            stack=stack,
        )
        add(ChunkKind.GIL_WAITS, thread=asking, start_ns=start, end_ns=start + 14 * MS, stack=stack)
    add(ChunkKind.GIL_TOTALS, thread=counting, holds=30, held_ns=420 * MS)
    add(
        ChunkKind.GIL_TOTALS, thread=asking, waits=30, wait_ns=420 * MS, holds=30,
        held_ns=150 * MS,
    )  # fmt: skip
    builder.set_status(process_cpu_ns=(200 + cpu_ms) * MS)

    assert diagnose(parse(builder.bytes())).verdict == kind


def test_it_is_said_that_the_gil_was_only_sampled() -> None:
    diagnosis = Turns().diagnosis()

    assert diagnosis.gil_source == diagnosis.to_json()["gil_source"] == "samples"
    assert diagnosis.totals["gil_wait_total_s"] is None
    assert diagnose(parse(TraceBuilder(duration_ns=MS).bytes())).gil_source is None
