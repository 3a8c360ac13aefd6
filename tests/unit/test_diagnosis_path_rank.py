"""Findings about several locks are ranked by the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.diagnosis import diagnose
from contention_lab.trace import Outcome, TraceBuilder, WaitKind, parse

if TYPE_CHECKING:
    from contention_lab.diagnosis import Finding

MS = 1_000_000


class Program:
    """Threads `worker` and `keeper` share a lock; `idler` and `hoarder` share another one."""

    def __init__(self, *, main_cpu_ms: int = 1, cores: int = 8) -> None:
        meta = {"machine": {"cores": cores}}
        self.builder = builder = TraceBuilder(duration_ns=1000 * MS, meta=meta)
        self.near, self.far = (
            builder.add_lock("threading.Lock", site=builder.add_frame("<module>", "work.py", line))
            for line in (1, 2)
        )
        self.main = builder.add_thread("main", is_main=True, cpu_ns=main_cpu_ms * MS)
        self.worker = builder.add_thread("worker", end_ns=995 * MS)
        self.keeper, self.idler, self.hoarder = (
            builder.add_thread(name) for name in ("keeper", "idler", "hoarder")
        )

    def contend(self, lock: int, victim: int, holder: int, part: int) -> None:
        """Let a thread wait `part` of every 100 ms for a holder that it calls again and again."""
        builder = self.builder
        calls = builder.add_lock("queue.SimpleQueue")
        site = builder.add_frame("hold", "work.py", 10 + lock)
        stack = builder.add_stack(builder.add_frame("wait", "work.py", 20 + lock))
        for start in range(0, 900, 100):
            end = (start + part + 5) * MS
            builder.add_hold(lock, holder, start * MS, end, site=site, waiters=1, cpu_ns=MS)
            builder.add_wait(lock, victim, (start + 5) * MS, end, holder=holder, stack=stack)
            called = (start + 99) * MS
            builder.add_wait(calls, holder, end, called, holder=victim, kind=WaitKind.COORDINATION)

    def join(self, name: str, since_ms: int = 1) -> None:
        """Let the main thread wait for a thread to end."""
        join = self.builder.add_lock("threading.Thread", name=name)
        self.builder.add_wait(join, self.main, since_ms * MS, 996 * MS, kind=WaitKind.COORDINATION)

    def findings(self) -> dict[int, Finding]:
        found = diagnose(parse(self.builder.bytes())).findings
        return {
            one.lock.site.line: one
            for one in found
            if one.lock and one.lock.site and "path_share" in one.evidence
        }


def test_a_lock_on_the_path_comes_before_one_that_is_waited_for_longer() -> None:
    program = Program()
    program.contend(program.near, program.worker, program.keeper, 40)
    program.contend(program.far, program.idler, program.hoarder, 80)
    program.join("worker")
    found = program.findings()
    assert [*found] == [1, 2]
    assert found[1].severity == found[1].evidence["path_share"] == pytest.approx(0.36)
    assert found[2].evidence["path_share"] == 0.0
    assert found[2].severity == pytest.approx(0.18)


def test_the_severity_of_a_lock_is_its_share_of_the_path() -> None:
    program = Program()
    program.contend(program.near, program.worker, program.keeper, 40)
    program.join("worker")
    (finding,) = program.findings().values()
    evidence = finding.evidence
    assert finding.severity == evidence["path_share"] == pytest.approx(0.36)
    assert evidence["wait_share"] == pytest.approx(0.36 * 1000 / 1995)  # of the time of its users


def test_what_a_finding_takes_off_stays_off() -> None:
    program = Program(cores=1)
    program.builder.add_thread("computes", cpu_ns=800 * MS)
    program.contend(program.near, program.worker, program.keeper, 40)
    program.join("worker")
    (finding,) = program.findings().values()
    assert finding.kind == "serialised-by-lock"
    assert 0.1 < finding.severity < 0.2


def test_a_single_lock_off_the_path_keeps_its_severity() -> None:
    program = Program()
    program.contend(program.far, program.idler, program.hoarder, 80)
    program.join("worker")
    (finding,) = program.findings().values()
    assert finding.evidence["path_share"] == 0.0
    assert finding.severity > 0.3


def test_where_the_end_depends_on_no_lock_the_time_of_users_ranks() -> None:
    program = Program()
    program.contend(program.near, program.idler, program.keeper, 40)
    program.contend(program.far, program.hoarder, program.keeper, 80)
    program.join("worker")
    assert [*program.findings()] == [2, 1]


@pytest.mark.parametrize(
    ("since_ms", "main_cpu_ms", "is_said"),
    [(1, 1, True), (600, 1, False), (600, 550, True), (450, 1, True)],
)
def test_a_path_that_ends_since_the_main_thread_slept_is_not_told(
    since_ms: int, main_cpu_ms: int, is_said: bool
) -> None:
    program = Program(main_cpu_ms=main_cpu_ms)
    program.contend(program.far, program.idler, program.hoarder, 80)
    program.join("worker", since_ms)
    assert bool(program.findings()) == is_said


def test_a_path_that_a_timeout_ends_is_not_told() -> None:
    program = Program()
    program.contend(program.far, program.idler, program.hoarder, 80)
    stop = program.builder.add_lock("threading.Lock in Event")
    program.builder.add_wait(
        stop,
        program.main,
        MS,
        990 * MS,
        kind=WaitKind.COORDINATION,
        outcome=Outcome.TIMED_OUT,
    )
    assert program.findings() == {}


def test_a_path_says_nothing_of_a_lock_that_is_only_tried() -> None:
    program = Program()
    program.contend(program.far, program.idler, program.hoarder, 80)
    program.builder.add_counter(program.far, program.idler, failed_tries=100)
    program.join("worker")
    assert program.findings() == {}
