"""The page of a trace of samples: what it shows is from the samples, and nothing is counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from sampled_scene import (
    ASLEEP,
    GETS,
    HOLDS,
    OUTSIDE,
    RUNS,
    SLEEPS,
    SPINS,
    TAKES,
    WAITS_GIL,
    scene,
)

from contention_lab.diagnosis import diagnose
from contention_lab.report import trace_page
from contention_lab.report.palette import SAMPLED_STATES
from contention_lab.report.sampled_lines import DOINGS, sampled_bars, sampled_lock_lines
from contention_lab.sampling.classes import ThreadState
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

READS = ThreadState(on_cpu=False, call="read")
SEEN = [
    [(HOLDS, RUNS, 0), (TAKES, ASLEEP, 8), (OUTSIDE, READS, 0), (GETS, ASLEEP, 16)],
    [(HOLDS, RUNS, 0), (TAKES, ASLEEP, 8), (OUTSIDE, READS, 0), (GETS, ASLEEP, 16)],
    [(HOLDS, RUNS, 0), (TAKES, ASLEEP, 8), (OUTSIDE, WAITS_GIL, 0), (GETS, ASLEEP, 16)],
    [(HOLDS, RUNS, 0), (SPINS, RUNS, 0), (OUTSIDE, SLEEPS, 0), (GETS, ASLEEP, 16)],
] * 25  # fmt: skip


def page(trace: Trace) -> str:
    return trace_page([trace], [diagnose(trace).to_json()], source=False)


def section(text: str, key: str) -> str:
    found = re.search(rf'<section id="{key}".*?</section>', text, re.DOTALL)
    assert found
    return found[0]


def test_every_activity_is_in_one_state_of_the_bars() -> None:
    assert [*DOINGS] == [state.key for state in SAMPLED_STATES]
    counted = [doing for doings in DOINGS.values() for doing in doings]
    assert sorted(counted) == sorted(Doing)


def test_bars_are_what_threads_were_seen_doing(tmp_path: Path) -> None:
    bars = {bar.label: bar for bar in sampled_bars(scene(tmp_path, SEEN))}

    shares = {
        label: {key: value / bar.total for key, value in bar.seconds.items() if value}
        for label, bar in bars.items()
    }
    assert shares == {
        "T0": {"run": pytest.approx(1)},
        "T1": {"park": pytest.approx(0.75), "spin": pytest.approx(0.25)},
        "T2": {"io": pytest.approx(0.5), "gil": pytest.approx(0.25), "other": pytest.approx(0.25)},
        "T3": {"coordination": pytest.approx(1)},
    }
    assert {bar.size for bar in bars.values()} == {"100×"}


def test_what_cannot_be_known_of_a_lock_is_absent(tmp_path: Path) -> None:
    lines = sampled_lock_lines(scene(tmp_path, SEEN))

    line = next(row for row in lines.rows if row.lock.label == "Pool._lock")
    assert line.wait_s == pytest.approx(0.75)
    assert line.threads == 1
    assert line.waited_share.startswith("75 % (")
    assert line.waited_share.endswith(" of the time")
    unknown = (line.acquires, line.contended, line.wait_max_s, line.hold_s, line.utilisation)
    assert unknown == (None,) * 5


def test_the_page_says_that_these_are_samples(tmp_path: Path) -> None:
    text = page(scene(tmp_path, SEEN))

    for key in ("threads", "timeline", "flame", "locks", "blocks"):
        assert "Of 400 samples, not a recording:" in section(text, key)
    locks = section(text, "locks")
    assert "Acquires, contended and the sums are exact" not in locks
    row = re.search(r"<tr><th scope=\"row\">Pool._lock.*?</tr>", locks, re.DOTALL)
    assert row
    assert re.findall(r"<td[^>]*>(?:<b>)?([^<]*)", row[0])[:3] == ["–", "–", "750\u202fms"]
    assert "off the core" not in section(text, "threads")
    assert "input or output 50 %" in section(text, "threads")
    assert "sampled for" in text
    assert "recorded for" not in text
    assert "writer thread" not in text


def test_samples_of_an_unknown_pace_have_no_seconds(tmp_path: Path) -> None:
    trace = scene(tmp_path, SEEN, about={"timed": False, "rate_known": False})

    line = next(r for r in sampled_lock_lines(trace).rows if r.lock.label == "Pool._lock")
    text = page(trace)

    assert (line.wait_s, line.spin_s, line.park_s) == (None, None, None)
    assert line.waited_share.endswith(" of the samples")
    assert "sampled for" not in text
    assert "No waits are made of these samples." in section(text, "timeline")
    assert "are of waits for locks" in text


def test_threads_that_sleep_are_unknown_where_only_cpus_were_sampled(tmp_path: Path) -> None:
    trace = scene(tmp_path, SEEN, about={"on_cpu_only": True})

    assert {row.park_s for row in sampled_lock_lines(trace).rows} == {None}
