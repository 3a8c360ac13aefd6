"""Deadlocks, risks of one, and programs that only look like it: what is said, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.diagnosis import diagnose
from contention_lab.trace import HoldFlag, Outcome, TraceBuilder, WaitKind, parse

if TYPE_CHECKING:
    from contention_lab.diagnosis import Diagnosis, Finding

MS = 1_000_000


class Program:
    """Two locks made at lines 1 and 2, and frames of `work.py`."""

    def __init__(self, duration_ms: int = 1000) -> None:
        self.builder = TraceBuilder(duration_ns=duration_ms * MS)
        builder = self.builder
        self.registry = builder.add_lock(
            "threading.Lock", site=builder.add_frame("<module>", "work.py", 1)
        )
        self.handler = builder.add_lock(
            "threading.Lock", site=builder.add_frame("<module>", "work.py", 2)
        )
        self.main = builder.add_thread("main", is_main=True, cpu_ns=MS)
        self.one, self.two = builder.add_thread("one"), builder.add_thread("two")

    def place(self, function: str, line: int) -> int:
        return self.builder.add_frame(function, "work.py", line, first_line=line - line % 10)

    def stack(self, *frames: tuple[str, int]) -> int:
        return self.builder.add_stack(*(self.place(*frame) for frame in frames))

    def diagnosis(self) -> Diagnosis:
        return diagnose(parse(self.builder.bytes()))

    def of_kind(self, kind: str) -> list[Finding]:
        return [finding for finding in self.diagnosis().findings if finding.kind == kind]


def deadlocked(*, rounds: int = 4, wait_ms: int = 150, duration_ms: int = 1000) -> Program:
    """Two threads that take the two locks in opposite orders and give up."""
    program = Program(duration_ms)
    builder = program.builder
    for start in range(10, 10 + 200 * rounds, 200):
        for thread, own, other, line in (
            (program.one, program.registry, program.handler, 21),
            (program.two, program.handler, program.registry, 31),
        ):
            end = start + 20 + wait_ms
            site = program.place("configure" if line == 21 else "emit", line)
            builder.add_hold(own, thread, start * MS, (end + 5) * MS, site=site, waiters=1)
            builder.add_wait(
                other,
                thread,
                (start + 20) * MS,
                end * MS + thread,
                holder=program.one + program.two - thread,
                outcome=Outcome.TIMED_OUT if thread == program.one else Outcome.ACQUIRED,
                stack=program.stack(
                    ("take", 12), ("configure" if line == 21 else "emit", line + 2)
                ),
            )
    return program


def test_a_deadlock_names_both_orders_and_both_places() -> None:
    diagnosis = deadlocked().diagnosis()
    assert diagnosis.verdict == "lock-order-deadlock"
    (finding,) = diagnosis.findings
    assert finding.severity == pytest.approx(0.6, abs=0.01)
    assert finding.lock is not None
    assert finding.lock.site is not None
    assert finding.lock.site.line == 1
    assert [party.site and party.site.line for party in finding.victims] == [12]
    assert {party.site.function for party in finding.culprits if party.site} == {
        "configure",
        "emit",
    }
    assert finding.evidence["deadlocks"] == 4
    assert finding.summary == (
        "Deadlock in `take` (work.py:12): thread one waits for `work:<module>:2` while it holds "
        "`work:<module>:1`, and thread two the other way round, 4 times, 600 ms in all, until one "
        "of them gave up; take them in one order everywhere."
    )
    assert "before" in finding.remedies[0].text


def test_one_that_lasts_to_the_end_outranks_all_else() -> None:
    program = Program()
    builder = program.builder
    for thread, own, other in (
        (program.one, program.registry, program.handler),
        (program.two, program.handler, program.registry),
    ):
        builder.add_hold(own, thread, 900 * MS, 1000 * MS, flags=HoldFlag.OPEN, waiters=1)
        builder.add_wait(
            other,
            thread,
            910 * MS,
            0,
            holder=program.one + program.two - thread,
            outcome=Outcome.OPEN,
            stack=program.stack(("transfer", 42)),
        )
    (finding,) = program.of_kind("lock-order-deadlock")
    assert finding.severity == 0.99
    assert finding.remedies[0].speedup_high == pytest.approx(1 / 0.91)
    assert "to the end of the recording" in finding.summary


def test_an_attempt_that_soon_gives_up_is_no_deadlock() -> None:
    assert deadlocked(rounds=4, wait_ms=2).of_kind("lock-order-deadlock") == []


def test_a_deadlock_is_not_told_as_a_slow_critical_section_too() -> None:
    assert {finding.kind for finding in deadlocked().diagnosis().findings} == {
        "lock-order-deadlock"
    }


def test_contention_apart_from_a_short_deadlock_is_still_told() -> None:
    program = deadlocked(rounds=1, wait_ms=20, duration_ms=2000)
    builder = program.builder
    stack, site = program.stack(("serve", 52)), program.place("refresh", 61)
    for start in range(300, 1900, 100):
        end = (start + 95) * MS
        builder.add_hold(program.registry, program.two, start * MS, end, site=site, waiters=1)
        builder.add_wait(
            program.registry, program.one, (start + 5) * MS, end, holder=program.two, stack=stack
        )
    kinds = {finding.kind for finding in program.diagnosis().findings}
    assert kinds == {"lock-order-deadlock", "serialised-by-lock"}
    assert program.diagnosis().verdict == "serialised-by-lock"


def test_a_join_of_a_thread_that_needs_my_lock_is_told_with_the_threads_name() -> None:
    program = Program()
    builder = program.builder
    join = builder.add_lock("threading.Thread", name="one")
    builder.add_hold(program.registry, program.main, 0, 1000 * MS, flags=HoldFlag.OPEN, waiters=1)
    stack = program.stack(("stop", 71))
    builder.add_wait(
        join,
        program.main,
        50 * MS,
        0,
        kind=WaitKind.COORDINATION,
        outcome=Outcome.OPEN,
        stack=stack,
    )
    builder.add_wait(
        program.registry,
        program.one,
        100 * MS,
        0,
        holder=program.main,
        outcome=Outcome.OPEN,
        stack=program.stack(("work", 81)),
    )
    (finding,) = program.of_kind("lock-order-deadlock")
    assert "thread one to end" in finding.summary
    assert finding.lock is not None


def self_deadlocked(**flags: int) -> Program:
    program = Program()
    builder = program.builder
    site = program.place("Tree.depth", 21)
    builder.add_hold(program.registry, program.one, 0, 800 * MS, site=site, **flags)
    builder.add_wait(
        program.registry,
        program.one,
        100 * MS,
        700 * MS,
        holder=program.one,
        outcome=Outcome.TIMED_OUT,
        stack=program.stack(("Tree.depth", 21), ("load", 5)),
    )
    return program


def test_a_thread_that_waits_for_its_own_lock() -> None:
    diagnosis = self_deadlocked().diagnosis()
    assert diagnosis.verdict == "self-deadlock"
    (finding,) = diagnosis.findings
    assert finding.severity == pytest.approx(0.6)
    assert [party.site and party.site.line for party in finding.culprits] == [21]
    assert "holds it itself" in finding.summary


def test_a_lock_used_as_a_signal_is_not_its_waiters_fault() -> None:
    program = self_deadlocked()
    program.builder.add_hold(
        program.registry,
        program.one,
        810 * MS,
        820 * MS,
        release_thread=program.two,
        flags=HoldFlag.HANDED_OFF,
    )
    assert program.of_kind("self-deadlock") == []


def risky(program: Program, *, by: tuple[int, int] | None = None) -> Program:
    one, two = by or (program.one, program.two)
    builder = program.builder
    builder.add_order(
        one,
        program.handler,
        {program.registry: program.place("configure", 21)},
        stack=program.stack(("configure", 22)),
    )
    builder.add_order(
        two,
        program.registry,
        {program.handler: program.place("emit", 31)},
        stack=program.stack(("emit", 32)),
        time_ns=7,
    )
    for lock in (program.registry, program.handler):
        builder.add_counter(lock, one, acquires=10)
    return program


def test_opposite_orders_are_a_risk_though_nobody_waited() -> None:
    diagnosis = risky(Program()).diagnosis()
    assert diagnosis.verdict == "lock-order-risk"
    (finding,) = diagnosis.findings
    assert finding.severity == 0.01
    assert {party.site.line for party in finding.victims if party.site} == {22, 32}
    assert {party.site.line for party in finding.culprits if party.site} == {21, 31}
    assert finding.summary == (
        "`configure` (work.py:22) takes `work:<module>:2` while it holds `work:<module>:1`, and "
        "`emit` (work.py:32) the other way round: threads that do so at the same time wait for "
        "ever, which has not happened here; take them in one order everywhere."
    )


def test_both_orders_in_one_thread_are_no_risk() -> None:
    program = Program()
    assert risky(program, by=(program.one, program.one)).diagnosis().verdict == "healthy"


def test_a_risk_that_has_come_true_is_told_once() -> None:
    kinds = [finding.kind for finding in risky(deadlocked()).diagnosis().findings]
    assert kinds == ["lock-order-deadlock"]


def test_orders_of_a_library_alone_are_not_told() -> None:
    program = Program()
    for thread, held, taken in (
        (program.one, program.registry, program.handler),
        (program.two, program.handler, program.registry),
    ):
        inside = program.builder.add_frame("emit", "/usr/lib/python3.11/logging/__init__.py", 9)
        stack = program.builder.add_stack(inside)
        program.builder.add_order(thread, taken, {held: 0}, stack=stack)
    assert program.diagnosis().verdict == "healthy"


def test_a_holder_that_waits_for_another_lock_is_told_with_the_root() -> None:
    program = Program()
    builder = program.builder
    outer, inner = program.registry, program.handler
    slow, middle = program.place("slow", 21), program.place("middle", 31)
    for start in range(0, 900, 100):
        builder.add_hold(inner, program.two, start * MS, (start + 80) * MS, site=slow, waiters=1)
        builder.add_hold(outer, program.one, start * MS, (start + 90) * MS, site=middle, waiters=1)
        for lock, thread, end, line in (
            (inner, program.one, 80, 32),
            (outer, program.main, 90, 41),
        ):
            builder.add_wait(
                lock,
                thread,
                (start + 5) * MS,
                (start + end) * MS,
                stack=program.stack(("middle" if lock == inner else "victim", line)),
            )
    findings = program.diagnosis().findings
    (finding,) = (one for one in findings if "passed_on_share" in one.evidence)
    assert finding.lock is not None
    assert finding.lock.site is not None
    assert finding.lock.site.line == 1
    assert "held by `slow` (work.py:21)" in finding.summary
    assert finding.evidence["passed_on_share"] == pytest.approx(75 / 85)


def test_one_place_that_takes_objects_in_any_order_is_told_once() -> None:
    program = Program()
    builder = program.builder
    site = builder.add_frame("Account.__init__", "work.py", 3)
    a, b = (builder.add_lock("threading.Lock", site=site) for _ in range(2))
    stack = program.stack(("transfer", 42))
    for thread, held, taken in ((program.one, a, b), (program.two, b, a)):
        builder.add_order(thread, taken, {held: program.place("transfer", 41)}, stack=stack)
        builder.add_counter(held, thread, acquires=1)
    (finding,) = program.of_kind("lock-order-risk")
    assert [party.share for party in finding.victims] == [1.0]
    assert "another" in finding.summary
    assert "the other way round" in finding.summary


def test_tasks_that_wait_for_each_other_are_called_tasks() -> None:
    builder = TraceBuilder(duration_ns=1000 * MS)
    builder.add_thread("main", is_main=True)
    locks = [builder.add_lock("asyncio.Lock", name=name) for name in "ab"]
    tasks = [builder.add_thread(f"Task-{n}", is_task=True) for n in (1, 2)]
    stack = builder.add_stack(builder.add_frame("take", "work.py", 5))
    for own in (0, 1):
        builder.add_hold(locks[own], tasks[own], 0, 900 * MS, waiters=1)
        builder.add_wait(
            locks[1 - own],
            tasks[own],
            100 * MS,
            (800 + own) * MS,
            holder=tasks[1 - own],
            outcome=Outcome.TIMED_OUT,
            stack=stack,
        )
    diagnosis = diagnose(parse(builder.bytes()))
    assert diagnosis.verdict == "lock-order-deadlock"
    assert "task Task-1 waits" in diagnosis.summary


def own_permits(
    *, around: str = "parent", kind: WaitKind = WaitKind.CONTENTION, outcome: Outcome = Outcome.OPEN
) -> Program:
    """A thread that has all permits that are out, taken in `parent`, and waits for one more."""
    program = Program()
    builder = program.builder
    permit = builder.add_lock("threading.Semaphore", site=program.place("<module>", 3))
    builder.add_wait(
        permit,
        program.one,
        200 * MS,
        0 if outcome == Outcome.OPEN else 900 * MS,
        holder_site=program.place("parent", 41),
        outcome=outcome,
        kind=kind,
        stack=program.stack(("child", 52), (around, 42)),
    )
    return program


def test_a_thread_that_needs_one_more_permit_than_there_are_waits_for_itself() -> None:
    (finding,) = own_permits().of_kind("self-deadlock")

    assert finding.lock is not None
    assert finding.lock.type == "threading.Semaphore"
    assert "which it took in `parent` (work.py:41)" in finding.summary
    assert "nobody else has given one back" in finding.summary


def test_whoever_takes_permits_that_others_give_back_is_no_deadlock() -> None:
    assert not own_permits(around="main").of_kind("self-deadlock")
    assert not own_permits(kind=WaitKind.COORDINATION).of_kind("self-deadlock")
    assert not own_permits(outcome=Outcome.TIMED_OUT).of_kind("self-deadlock")
