"""Findings on hand-made traces: when they are true, and above all when they are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import (
    Level,
    Outcome,
    TraceBuilder,
    TraceError,
    WaitKind,
    parse,
)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a loaded machine any example may be slow; that is no failure."""


MS = 1_000_000


class Case:
    """Threads that take turns at one lock, and what is changed about it.

    One thread after the other holds the lock for `hold_ms`, and all others wait meanwhile. In
    between the lock is free for `gap_ms`, and nobody waits.
    """

    def __init__(
        self,
        *,
        threads: int = 8,
        turns: int = 40,
        hold_ms: tuple[float, ...] = (10.0,),
        gap_ms: float = 0.0,
        spinning: bool = False,
        spin_cpu: float = 0.25,
        cores: int | None = 64,
        work_cpu_s: float = 0.4,
        gil: float = 0.0,
        waiters: int | None = None,
        instances: int = 1,
        recorded_holds: bool = True,
        on_core: float = 0.0,
        preemptions: int = 0,
        level: Level = Level.PROFILE,
        kind: WaitKind = WaitKind.CONTENTION,
    ) -> None:
        meta: dict[str, Any] = {"python": {"version": "3.11.7", "gil": True}}
        if cores is not None:
            meta["machine"] = {"cores": cores}
        self.builder = builder = TraceBuilder(meta=meta, level=level)
        made = builder.add_frame("Server.__init__", "/src/server.py", 31)
        register = builder.add_frame("Client.register", "/src/client.py", 20)
        backward = builder.add_frame("Client.backward", "/src/client.py", 40)
        matmul = builder.add_frame("MatMul.backward", "/src/rules.py", 7)
        acquire = builder.add_frame("Lock.acquire", "/usr/lib/python3.11/threading.py", 1)
        wait_stack = builder.add_stack(acquire, register)
        hold_stack = builder.add_stack(backward)
        running = builder.add_stack(matmul, backward)
        lock_type = "SpinLock" if spinning else "Mutex"
        locks = [
            builder.add_lock(lock_type, name="autodiff server", site=made) for _ in range(instances)
        ]
        waiting = threads - 1 if waiters is None else waiters
        spin_ns = now = 0
        for turn in range(turns):
            lock = locks[turn % instances]
            held = round(hold_ms[turn % len(hold_ms)] * MS)
            next_held = round(hold_ms[(turn + 1) % len(hold_ms)] * MS)
            holder = turn % threads
            for other in range(1, waiting + 1):
                spun = held if spinning else 0
                gil_ns = round(gil * next_held) if other == 1 else 0
                spin_ns += round(spun * spin_cpu)
                builder.add_wait(
                    lock,
                    (holder + other) % threads + 1,
                    now,
                    now + held + gil_ns,
                    stack=wait_stack,
                    holder=holder + 1,
                    holder_site=backward,
                    holder_stack=running,
                    spin_ns=spun,
                    spin_cpu_ns=round(spun * spin_cpu),
                    park_ns=held - spun,
                    gil_ns=gil_ns,
                    kind=kind,
                )
            if recorded_holds:
                builder.add_hold(
                    lock,
                    holder + 1,
                    now,
                    now + held,
                    site=backward,
                    stack=hold_stack,
                    cpu_ns=round(held * on_core),
                    preemptions=preemptions,
                )
            now += held + round(gap_ms * MS)
        builder.set_status(
            time_ns=now, process_cpu_ns=round(work_cpu_s * 1e9) + spin_ns, dropped_waits=2
        )
        for thread in range(threads):
            builder.add_thread(f"worker {thread}")

    def diagnosis(self) -> Diagnosis:
        return diagnose(parse(self.builder.bytes()))


# serialised-by-lock


def test_threads_that_take_turns_are_serialised() -> None:
    diagnosis = Case().diagnosis()

    assert diagnosis.verdict == "serialised-by-lock"
    (finding,) = diagnosis.findings
    assert finding.evidence["wait_share"] == pytest.approx(7 / 8)
    assert finding.evidence["path_share"] == pytest.approx(1.0)
    assert finding.severity == pytest.approx(1.0, abs=0.02)
    assert finding.lock is not None
    assert (finding.lock.name, finding.lock.type) == ("autodiff server", "Mutex")
    assert finding.lock.site is not None
    assert finding.lock.site.place == "server.py:31"
    (victim,), (culprit,) = finding.victims, finding.culprits
    assert victim.site is not None
    assert victim.site.function == "Client.register"
    assert victim.thread_s == pytest.approx(2.8)
    assert victim.share == pytest.approx(1.0)
    assert [frame.function for frame in victim.stack] == ["Lock.acquire", "Client.register"]
    assert culprit.site is not None
    assert culprit.site.function == "MatMul.backward"
    assert culprit.acquired is not None
    assert culprit.acquired.function == "Client.backward"
    assert [frame.function for frame in culprit.stack] == ["MatMul.backward", "Client.backward"]
    assert finding.evidence["utilisation"] == pytest.approx(1.0)
    assert diagnosis.summary == (
        "7 of 8 threads wait in `Client.register` while `Client.backward` (client.py:40) holds "
        "`autodiff server` (Mutex, made at server.py:31), 10 ms at a time: 88 % of their time is "
        "spent waiting for it, 100 % of that for this code."
    )


def test_no_more_is_promised_than_the_cores_can_give() -> None:
    # Two cores, one of them busy all the time: the other one is all there is to win.
    (finding,) = Case(cores=2, work_cpu_s=0.4).diagnosis().findings

    assert finding.severity == pytest.approx(0.5)
    for remedy in finding.remedies:
        assert remedy.speedup_high == pytest.approx(2.0)
        assert remedy.speedup_low == 1.0
        assert remedy.speedup is None


def test_remedies_for_the_serial_share_are_not_a_cheaper_lock() -> None:
    (finding,) = Case().diagnosis().findings

    assert [remedy.kind for remedy in finding.remedies] == ["narrow", "shard"]
    assert "different orders" in finding.remedies[1].text


@pytest.mark.parametrize(
    ("waiters", "gap_ms", "accused"), [(1, 0.0, True), (1, 10.0, False), (7, 90.0, False)]
)
def test_waiting_counts_against_the_time_of_the_users(
    waiters: int, gap_ms: float, accused: bool
) -> None:
    # Shares of 1/8 and 1/16, and of 7/80: only the first is a tenth or more.
    diagnosis = Case(waiters=waiters, gap_ms=gap_ms).diagnosis()

    assert (diagnosis.verdict == "serialised-by-lock") == accused


def test_locks_of_one_place_are_one_finding() -> None:
    (finding,) = Case(instances=4).diagnosis().findings

    assert finding.lock is not None
    assert finding.lock.instances == 4
    assert "4 of them" in finding.summary
    assert finding.evidence["wait_s"] == pytest.approx(2.8)


@pytest.mark.parametrize("level", [*Level])
def test_at_level_counters_nobody_is_accused_since_nothing_says_who_held(level: Level) -> None:
    builder = TraceBuilder(level=level, duration_ns=1000 * MS)
    lock = builder.add_lock(name="catalog")
    for thread in (builder.add_thread(), builder.add_thread()):
        builder.add_counter(lock, thread, contended=50, acquires=50, wait_ns=450 * MS)
    diagnosis = diagnose(parse(builder.bytes()))

    if level == Level.COUNTERS:
        assert (diagnosis.verdict, diagnosis.findings) == ("healthy", ())
        assert "record with --level profile" in diagnosis.summary
        assert "`catalog`" in diagnosis.summary
    else:
        assert diagnosis.verdict == "serialised-by-lock"
        assert diagnosis.findings[0].victims == ()
        assert diagnosis.findings[0].evidence["missing_waits"] == 100


def test_at_level_counters_little_waiting_is_little_waiting() -> None:
    builder = TraceBuilder(level=Level.COUNTERS, duration_ns=1000 * MS)
    lock, thread = builder.add_lock(name="catalog"), builder.add_thread()
    builder.add_counter(lock, thread, contended=1, acquires=50, wait_ns=2 * MS)

    assert "No lock limits this program" in diagnose(parse(builder.bytes())).summary


def test_a_recording_that_is_cut_before_its_waits_acquits_nobody() -> None:
    builder = TraceBuilder(duration_ns=1000 * MS)
    lock, thread = builder.add_lock(name="catalog"), builder.add_thread()
    builder.add_counter(lock, thread, acquires=50)
    whole = builder.bytes()

    assert diagnose(parse(whole)).summary.startswith("No lock limits this program")
    cut = diagnose(parse(whole[:-20]))
    assert cut.verdict == "healthy"
    assert cut.summary.startswith("Nobody is accused, but the recording is not whole")


def test_a_wait_that_never_ended_is_a_finding() -> None:
    builder = TraceBuilder(duration_ns=1000 * MS)
    lock = builder.add_lock(name="catalog")
    a, b = builder.add_thread("a"), builder.add_thread("b")
    at = builder.add_frame("refresh", "/src/catalog.py", 9)
    builder.add_wait(lock, b, 10 * MS, 0, outcome=Outcome.OPEN, holder=a, holder_site=at)
    diagnosis = diagnose(parse(builder.bytes()))

    assert diagnosis.verdict == "serialised-by-lock"
    (culprit,) = diagnosis.findings[0].culprits
    assert culprit.site is not None
    assert culprit.site.function == "refresh"
    assert diagnosis.findings[0].evidence["open_waits"] == 1


# spin-collapse


def collapse(**changes: Any) -> Case:
    """Holds of 1 ms, a third of them cut in two by 20 ms off the CPU, while 7 others spin."""
    settings: dict[str, Any] = {
        "hold_ms": (1.0, 1.0, 21.0),
        "turns": 60,
        "spinning": True,
        "cores": 2,
        "work_cpu_s": 0.06,
    }
    return Case(**{**settings, **changes})


def test_spinners_that_take_the_holders_cpu_are_a_collapse() -> None:
    diagnosis = collapse().diagnosis()

    assert diagnosis.verdict == "spin-collapse"
    finding = diagnosis.findings[0]
    assert finding.severity == pytest.approx(400 / 460)
    assert finding.evidence["stretch"] == pytest.approx(460 / 60)
    assert finding.evidence["average_spinners"] == pytest.approx(7.0)
    assert diagnosis.summary.startswith(
        "7 of 8 threads spin and burn 93 % of the CPU time on 2 cores while `Client.backward` "
        "(client.py:40) holds `autodiff server` (SpinLock, made at server.py:31), 7.7 ms at a "
        "time; half of these holds take under 1.0 ms"
    )


def test_holds_that_are_all_cut_short_of_cpu_are_a_collapse_too() -> None:
    diagnosis = collapse(hold_ms=(10.0,), turns=40, on_core=0.2, preemptions=2).diagnosis()

    assert diagnosis.verdict == "spin-collapse"
    finding = diagnosis.findings[0]
    assert finding.severity == pytest.approx(0.8)
    assert finding.evidence["stretch"] == pytest.approx(5.0)
    assert (
        "10 ms at a time; the scheduler takes it off its core, it runs for 20 % of that"
        in diagnosis.summary
    )


def test_a_holder_that_sleeps_while_others_spin_is_not_said_to_be_preempted() -> None:
    diagnosis = collapse(hold_ms=(10.0,), turns=40, on_core=0.2, preemptions=0).diagnosis()

    assert [finding.kind for finding in diagnosis.findings] == ["serialised-by-lock"]


def test_parking_is_never_sold_as_a_cure_for_serial_work() -> None:
    collapsed, serialised = collapse().diagnosis().findings

    (park,) = collapsed.remedies
    assert park.kind == "park"
    assert park.speedup_high == pytest.approx(460 / 60)
    assert "stays serial" in park.text
    assert serialised.kind == "serialised-by-lock"
    assert serialised.severity < 0.2


@pytest.mark.parametrize(
    "changes",
    [
        {"cores": 64},  # a CPU for every spinner
        {"cores": 8},
        {"cores": None},  # nobody knows
        {"spin_cpu": 0.001},  # they yield
        {"spinning": False},
        {"hold_ms": (7.0, 7.1, 7.2)},  # the holder is not slowed
        {"hold_ms": (7.0,), "on_core": 0.95, "preemptions": 1},  # nor by a single interrupt
    ],
)
def test_without_any_one_condition_it_is_no_collapse(changes: dict[str, Any]) -> None:
    diagnosis = collapse(**changes).diagnosis()

    assert [finding.kind for finding in diagnosis.findings] == ["serialised-by-lock"]
    assert "spin" not in diagnosis.summary


# healthy


@pytest.mark.parametrize(
    "case",
    [
        Case(waiters=0),  # a lock that is held all the time and nobody waits for
        Case(turns=1, hold_ms=(0.1,)),  # next to nothing
        Case(gil=0.95),  # new holders spend their holds waiting for the GIL
        Case(gap_ms=90.0),
        collapse(gap_ms=150.0),
    ],
    ids=["unwaited", "tiny", "gil", "rare", "rare-spin"],
)
def test_nobody_is_accused_without_cause(case: Case) -> None:
    diagnosis = case.diagnosis()

    assert diagnosis.verdict == "healthy"
    assert diagnosis.findings == ()
    assert diagnosis.summary.startswith("No lock limits this program")


def test_threads_that_wait_for_one_another_accuse_nobody_and_acquit_no_lock() -> None:
    diagnosis = Case(kind=WaitKind.COORDINATION).diagnosis()

    assert diagnosis.verdict == "healthy"
    assert diagnosis.findings == ()
    assert diagnosis.summary.startswith("Nobody is accused: 8 threads spend")
    assert "they wake one another" in diagnosis.summary


def test_a_free_lock_that_nobody_takes_is_not_its_holders_fault() -> None:
    # 99 % of the waiting happens while nobody holds the lock: the waiters had no CPU.
    builder = TraceBuilder(duration_ns=1000 * MS, meta={"machine": {"cores": 2}})
    lock = builder.add_lock()
    a, b = builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, a, 0, 5 * MS)
    builder.add_wait(lock, b, 0, 900 * MS, holder=a)

    assert diagnose(parse(builder.bytes())).verdict == "healthy"


def test_an_empty_trace_is_healthy() -> None:
    diagnosis = diagnose(parse(TraceBuilder().bytes()))

    assert diagnosis.verdict == "healthy"
    assert diagnosis.summary == "No lock limits this program: none that is recorded was used."


def test_healthy_says_how_little_was_waited() -> None:
    assert Case(gap_ms=390.0).diagnosis().summary == (
        "No lock limits this program: its threads waited 2.2 % of their time for locks, 2.8 s of "
        "it for `autodiff server`, the most waited for."
    )


@pytest.mark.parametrize(
    ("name", "made", "said"),
    [
        ("", ("<module>", "/usr/lib/python3.11/threading.py", 818), "`threading:<module>:818`"),
        ("logging._lock", None, "`logging._lock`"),
    ],
)
def test_an_acquitted_lock_that_python_made_for_itself_is_said_to_be_pythons(
    name: str, made: tuple[str, str, int] | None, said: str
) -> None:
    builder = TraceBuilder(duration_ns=1000 * MS)
    site = 0 if made is None else builder.add_frame(*made)
    lock = builder.add_lock("threading.Lock", name=name, site=site)
    builder.add_wait(lock, builder.add_thread("worker", end_ns=1000 * MS), 0, MS)

    summary = diagnose(parse(builder.bytes())).summary

    assert f"for {said}, a lock inside Python's standard library, the most waited" in summary


# The contract


def test_json_has_the_names_of_the_contract() -> None:
    written = json.loads(json.dumps(Case().diagnosis().to_json()))

    assert written["schema"] == 1
    assert {"verdict", "summary", "findings", "totals", "python", "machine"} <= set(written)
    (finding,) = written["findings"]
    assert set(finding) >= {
        *("kind", "severity", "lock", "victims", "culprits", "evidence", "remedies"),
    }
    assert set(finding["lock"]) >= {"name", "type", "site", "instances"}
    assert finding["lock"]["site"] == {
        "file": "/src/server.py",
        "line": 31,
        "function": "Server.__init__",
    }
    for party in (*finding["victims"], *finding["culprits"]):
        assert set(party) >= {"site", "stack", "thread_s", "share"}
    assert set(finding["evidence"]) >= {
        *("wait_s", "spin_s", "park_s", "gil_s", "hold_s"),
        *("utilisation", "contended", "acquires"),
    }
    for remedy in finding["remedies"]:
        assert set(remedy) >= {"kind", "text", "speedup", "speedup_low", "speedup_high"}
    assert set(written["totals"]) >= {
        *("wall_s", "cpu_s", "threads", "lock_wait_s", "spin_s", "gil_share"),
        *("coordination_wait_s", "dropped", "overhead_s", "stopped_s"),
    }
    assert written["totals"]["dropped"] == 2
    assert written["totals"]["lock_wait_s"] == pytest.approx(2.8)
    assert written["python"]["gil"] is True
    assert written["machine"] == {"cores": 64}


def test_the_same_trace_has_the_same_diagnosis() -> None:
    data = collapse().builder.bytes()

    assert diagnose(parse(data)).to_json() == diagnose(parse(data)).to_json()


def test_what_is_wrong_with_the_trace_is_passed_on() -> None:
    data = Case().builder.bytes()
    diagnosis = diagnose(parse(data[:-200]))

    assert diagnosis.problems
    assert diagnosis.to_json()["problems"] == list(diagnosis.problems)


@pytest.mark.parametrize(
    "meta", [{"machine": []}, {"machine": {"cores": "two"}}, {"python": 3}, {"machine": None}]
)
def test_metadata_of_another_shape_does_no_harm(meta: dict[str, Any]) -> None:
    diagnosis = diagnose(parse(TraceBuilder(meta=meta).bytes()))

    assert isinstance(diagnosis.to_json()["python"], dict)
    assert isinstance(diagnosis.to_json()["machine"], dict)


@settings(unhurried, max_examples=60)
@given(st.data())
def test_a_damaged_trace_is_diagnosed_or_refused(data: st.DataObject) -> None:
    file = bytearray(Case(turns=4).builder.bytes())
    at = data.draw(st.integers(0, len(file) - 1))
    file[at] ^= data.draw(st.integers(1, 255))
    try:
        trace = parse(bytes(file))
    except TraceError:
        return
    json.dumps(diagnose(trace).to_json(), allow_nan=False)


times = st.integers(0, (1 << 64) - 1)
ids = st.integers(0, 4)


@settings(unhurried, max_examples=100)
@given(
    st.lists(st.tuples(ids, ids, times, times, times, ids, ids), max_size=12),
    st.lists(st.tuples(ids, ids, times, times, ids, ids), max_size=12),
)
def test_nonsense_is_diagnosed_without_an_exception(
    waits: list[tuple[int, ...]], holds: list[tuple[int, ...]]
) -> None:
    builder = TraceBuilder(meta={"machine": {"cores": 2}})
    frame = builder.add_frame("f", "/src/a.py", 1)
    builder.add_stack(frame)
    for _ in range(3):
        builder.add_lock("SpinLock", site=frame)
        builder.add_thread(cpu_ns=10)
    for lock, thread, start, end, part, stack, holder in waits:
        builder.add_wait(
            lock,
            thread,
            start,
            end,
            spin_ns=part,
            spin_cpu_ns=part,
            gil_ns=part // 2,
            stack=stack,
            holder=holder,
            holder_stack=stack,
        )
    for lock, thread, start, end, stack, site in holds:
        builder.add_hold(lock, thread, start, end, stack=stack, site=site)
    json.dumps(diagnose(parse(builder.bytes())).to_json(), allow_nan=False)


def test_a_lock_that_nobody_was_seen_to_hold_is_not_acquitted() -> None:
    builder = TraceBuilder()
    lock, waiter = builder.add_lock("Mutex", name="dead"), builder.add_thread("waiter")
    builder.add_wait(lock, waiter, 0, 2_000 * MS, outcome=Outcome.INTERRUPTED)
    diagnosis = diagnose(parse(builder.bytes()))

    assert diagnosis.findings == ()
    assert "the recording does not show what held it" in diagnosis.summary
