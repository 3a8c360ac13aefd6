"""Locks that several processes share: one trace, and one diagnosis, of all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contention_lab.analysis import blame, lock_table
from contention_lab.analysis.processes import across_processes, with_sites_of_makers
from contention_lab.diagnosis import diagnose_together
from contention_lab.trace import Trace, TraceBuilder, parse

MS = 1_000_000
MADE = ("<module>", "/src/app.py", 3)


def _process(
    pid: int, *, holds: bool, start_ms: int, knows_site: bool = True, name: str = "/mp-1"
) -> Trace:
    """One process that holds the shared lock for 100 ms ten times, or waits for it as often."""
    builder = TraceBuilder(pid=pid, meta={"machine": {"cores": 64}}, duration_ns=2000 * MS)
    for _ in range(pid % 3):  # ids differ from process to process
        builder.add_lock("threading.Lock", name="private")
        builder.add_thread("helper")
    made = builder.add_frame(*MADE) if knows_site else 0
    lock = builder.add_lock("multiprocessing.Lock", name=name, site=made)
    work = builder.add_stack(builder.add_frame(f"work_{pid}", "/src/app.py", 10 + pid % 7))
    thread = builder.add_thread("MainThread", end_ns=2000 * MS)
    site = builder.add_frame(f"take_{pid}", "/src/app.py", 20 + pid % 7)
    for turn in range(10):
        start = (turn * 200 - start_ms + 50) * MS
        if holds:
            builder.add_hold(lock, thread, start, start + 100 * MS, stack=work, site=site)
        else:
            builder.add_wait(lock, thread, start, start + 100 * MS, stack=work)
    return replace(parse(builder.bytes(), f"app.{pid}.clt"), start_mono_ns=start_ms * MS)


def test_waits_meet_the_holds_of_other_processes_on_one_clock() -> None:
    traces = [_process(101, holds=True, start_ms=0), _process(202, holds=False, start_ms=30)]

    whole = across_processes(traces)

    assert whole is not None
    (row,) = lock_table(whole)
    assert row.lock.label == "app:<module>:3"
    assert row.wait_s == pytest.approx(1.0)
    assert blame(whole).unexplained_ns == 0
    assert sorted(thread.label for thread in whole.threads.values() if "Main" in thread.label) == [
        "MainThread of process 101",
        "MainThread of process 202",
    ]
    (hold,) = {int(hold["thread"]) for hold in whole.holds}
    assert whole.threads[hold].label == "MainThread of process 101"
    assert whole.stack(int(whole.holds["stack"][0]))[0].function == "work_101"
    assert whole.stack(int(whole.waits["stack"][0]))[0].function == "work_202"


def test_who_makes_another_process_wait_is_named() -> None:
    traces = [
        _process(202, holds=False, start_ms=30, knows_site=False),
        _process(101, holds=True, start_ms=0),
    ]

    diagnosis = diagnose_together(traces)

    assert diagnosis.verdict == "serialised-by-lock"
    (finding,) = diagnosis.findings
    assert finding.lock is not None
    assert finding.lock.name == "app:<module>:3"
    (victim,), (culprit,) = finding.victims, finding.culprits
    assert victim.site is not None
    assert victim.site.function == "work_202"
    assert culprit.acquired is not None
    assert culprit.acquired.function == "take_101"
    assert diagnosis.totals["wall_s"] == pytest.approx(2.0)
    assert diagnosis.totals["lock_wait_s"] == pytest.approx(1.0)


def _maker(pid: int) -> Trace:
    """One process that makes the shared lock, hands it to others, and never takes it."""
    builder = TraceBuilder(pid=pid, meta={"machine": {"cores": 64}}, duration_ns=2000 * MS)
    builder.add_lock("multiprocessing.Lock", name="/mp-1", site=builder.add_frame(*MADE))
    return replace(parse(builder.bytes(), "app.clt"), start_mono_ns=0)


def test_a_lock_that_its_maker_only_hands_on_is_called_by_where_it_was_made() -> None:
    workers = [
        _process(101, holds=True, start_ms=20, knows_site=False),
        _process(202, holds=False, start_ms=30, knows_site=False),
    ]

    diagnosis = diagnose_together([_maker(7), *workers])
    maker, holder, waiter = with_sites_of_makers([_maker(7), *workers])

    (finding,) = diagnosis.findings
    assert finding.lock is not None
    assert finding.lock.name == "app:<module>:3"
    assert {lock_table(one)[0].lock.label for one in (holder, waiter)} == {"app:<module>:3"}
    assert lock_table(maker) == ()
    assert lock_table(workers[1])[0].lock.label == "/mp-1"


def test_a_process_alone_does_not_acquit_a_lock_held_elsewhere() -> None:
    diagnosis = diagnose_together([_process(202, holds=False, start_ms=0)])

    assert diagnosis.verdict == "healthy"
    assert diagnosis.summary.startswith("Nobody is accused: ")
    assert "It is shared with other processes" in diagnosis.summary


def test_locks_of_one_process_only_are_not_shared() -> None:
    traces = [
        _process(101, holds=True, start_ms=0, name="/mp-1"),
        _process(202, holds=False, start_ms=0, name="/mp-2"),
    ]
    assert across_processes(traces) is None
    assert across_processes(traces[:1]) is None


def test_no_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one trace"):
        diagnose_together([])


def test_a_process_of_an_earlier_run_is_left_out_and_said_to_be() -> None:
    now = _process(101, holds=True, start_ms=0)
    before = replace(_process(202, holds=False, start_ms=0), start_unix_ns=-10_000 * MS)

    diagnosis = diagnose_together([now, before])

    assert diagnosis.verdict == "healthy"
    assert diagnosis.problems == (
        *diagnose_together([now]).problems,
        "app.202.clt: left out, since it did not run at the same time",
    )


def test_with_all_traces_named_nobody_is_asked_to_name_them() -> None:
    waiting = [_process(101, holds=False, start_ms=0), _process(202, holds=False, start_ms=30)]

    diagnosis = diagnose_together(waiting)

    assert diagnosis.verdict == "healthy"
    assert "In none of the 2 processes was anybody seen to hold it" in diagnosis.summary
    assert "--subprocesses" not in diagnosis.summary


def test_a_lock_held_in_a_process_that_is_named_too_is_explained() -> None:
    traces = [_process(101, holds=True, start_ms=0), _process(202, holds=False, start_ms=30)]

    assert "seen to hold it" not in diagnose_together(traces).summary


def test_a_process_that_only_gives_signals_uses_no_lock_and_is_looked_at_all_the_same() -> None:
    giver = replace(parse(TraceBuilder(pid=303, duration_ns=2000 * MS).bytes()), start_mono_ns=0)

    diagnosis = diagnose_together([_process(202, holds=False, start_ms=0), giver])

    assert "In none of the 2 processes was anybody seen to hold it" in diagnosis.summary
