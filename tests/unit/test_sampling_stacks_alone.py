"""Stacks without the kernel's word for what threads do, as on systems without /proc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sampled_scene import GETS, HOLDS, OUTSIDE, SOURCE, TAKES

from contention_lab.cli.sampled_table import doings, sampled_rows
from contention_lab.diagnosis import diagnose
from contention_lab.sampling.joining import joined_samples
from contention_lab.sampling.py_spy import StackLine
from contention_lab.sampling.sampled_trace import sampled_trace
from contention_lab.sampling.sources import Sources
from contention_lab.trace import Doing, Trace, parse

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.sampling.frame import SampledFrame

START_NS, SECOND_NS, PAUSE_NS = 5_000_000_000, 1_000_000_000, 10_000_000


def line(number: int, *stacks: tuple[float, tuple[SampledFrame, ...]]) -> StackLine:
    times = [START_NS + round(second * SECOND_NS) for second, _ in stacks]
    return StackLine(number, number, f"T{number}", times, [stack for _, stack in stacks])


def traced(tmp_path: Path, *lines: StackLine) -> Trace:
    """Return the trace of two seconds of stacks, at a hundred samples a second."""
    (tmp_path / "prog").mkdir()
    (tmp_path / "prog" / "app.py").write_text(SOURCE)
    end_ns = START_NS + 2 * SECOND_NS
    joined = joined_samples(
        lines, [], None, {}, native=False, pid=1, end_ns=end_ns, pause_ns=PAUSE_NS
    )
    builder = sampled_trace(
        joined.samples,
        joined.threads,
        Sources(root=tmp_path),
        about={
            "source": "py-spy",
            "interval_ns": joined.duration_ns // joined.looks,
            "states_known": joined.states_known,
        },
        duration_ns=joined.duration_ns,
    )
    return parse(builder.bytes())


def test_stacks_alone_make_samples_at_their_pace(tmp_path: Path) -> None:
    trace = traced(tmp_path, line(1, (0.0, TAKES), (0.5, HOLDS), (1.5, ())), line(2, (1.0, GETS)))

    samples = trace.samples
    seconds = {
        (int(thread), Doing(int(doing)).name): 0.0
        for thread, doing in zip(samples["thread"], samples["doing"], strict=True)
    }
    for sample in samples:
        key = int(sample["thread"]), Doing(int(sample["doing"])).name
        seconds[key] += float(sample["weight_ns"]) / SECOND_NS
    assert {key: round(value, 6) for key, value in seconds.items()} == {
        (1, "AWAITS_LOCK"): 0.5,
        (1, "UNKNOWN"): 1.0,
        (2, "COORDINATES"): 1.0,
    }
    assert trace.threads[1].end_ns == 1.5 * SECOND_NS


def test_locks_are_named_from_source_lines_and_nobody_is_accused(tmp_path: Path) -> None:
    trace = traced(tmp_path, line(1, (0.0, HOLDS)), line(2, (0.0, TAKES)), line(3, (0.0, OUTSIDE)))

    found = diagnose(trace)

    assert found.verdict == "healthy"
    assert found.summary.startswith("Nobody is accused: by samples, threads wait for `Pool._lock`")
    assert "stacks alone" in found.not_seen[0]
    assert not trace.samples["holder"].any()
    (row,) = sampled_rows(trace)
    assert (row.lock, row.waiting, row.holder) == ("Pool._lock", 1.0, "")
    assert doings(trace) == "threads, on average: 1.0 waiting for a lock, 2.0 not known"


def test_what_threads_without_a_wait_do_is_not_guessed(tmp_path: Path) -> None:
    trace = traced(tmp_path, line(1, (0.0, OUTSIDE)))

    assert set(trace.samples["doing"]) == {Doing.UNKNOWN}
    assert "whether they run" in diagnose(trace).summary
