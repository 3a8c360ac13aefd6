"""`contention-lab diagnose`: verdict, evidence and next step, each on its stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.cli import main
from contention_lab.cli.finding_lines import finding_lines
from contention_lab.trace import ChunkKind, TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Five locks, each held by one thread while another waits for it most of the time."""
    notes = [{"what": f"thing {i}", "why": "out of sight", "count": 1} for i in range(5)]
    builder = TraceBuilder(meta={"machine": {"cores": 64}, "not_seen": notes})
    for number in range(5):
        made = builder.add_frame(f"make_{number}", "/src/app.py", 10 + number)
        get = builder.add_stack(builder.add_frame(f"get_{number}", "/src/app.py", 20 + number))
        put = builder.add_stack(builder.add_frame(f"put_{number}", "/src/app.py", 30 + number))
        lock = builder.add_lock("threading.Lock", site=made)
        waiter = builder.add_thread(f"waiter {number}", end_ns=1000 * MS)
        holder = builder.add_thread(f"holder {number}", end_ns=1000 * MS)
        for turn in range(10):
            start = turn * 100 * MS
            builder.add_wait(lock, waiter, start, start + 80 * MS, stack=get, holder=holder)
            builder.add_hold(lock, holder, start, start + 80 * MS, stack=put)
        builder.add_counter(lock, waiter, acquires=10, contended=10, wait_ns=800 * MS)
        builder.add_counter(lock, holder, acquires=10, hold_ns=800 * MS)
    builder.write(tmp_path / "run.clt")
    return tmp_path / "run.clt"


def test_the_verdict_and_the_next_step_are_on_stderr_and_the_evidence_on_stdout(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(path)]) == 0

    out, err = capsys.readouterr()
    summary = json.loads(_json(path, capsys))["summary"]
    assert err.splitlines()[0] == summary
    assert err.splitlines()[-1] == f"next: contention-lab report {path}"
    assert summary not in out
    assert [line[:2] for line in out.splitlines() if line[0] != " "] == ["1.", "2.", "3."]
    assert "waits     100 %   800 ms  get_" in out


def test_all_findings_and_all_that_was_not_recorded_are_shown_if_asked(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(path)]) == 0
    short = capsys.readouterr()
    assert main(["diagnose", str(path), "--all"]) == 0
    whole = capsys.readouterr()

    assert "more findings: --all shows them" in short.err
    assert short.err.count("not recorded: ") == 3
    assert whole.err.count("not recorded: ") == 5
    assert len(whole.out.splitlines()) > len(short.out.splitlines())
    assert "more findings" not in whole.err


def test_figures_of_a_kind_are_said_with_their_units() -> None:
    finding: dict[str, Any] = {
        "kind": "some-kind",
        "severity": 0.0,
        "summary": "It is so.",
        "lock": None,
        "victims": [],
        "culprits": [],
        "evidence": {
            "wait_s": 2.0,
            "gil_s": 0.001,
            "off_cpu_share": 0.5,
            "late_s": 0.02,
            "items": 3,
        },
        "remedies": [
            {"kind": "a", "text": "Do.", "speedup": None, "speedup_low": 1.0, "speedup_high": 2.0},
            {"kind": "b", "text": "Or.", "speedup": None, "speedup_low": 1.0, "speedup_high": 1.0},
        ],
    }
    assert list(finding_lines(finding, 2)) == [
        "2. some-kind",
        "   It is so.",
        "   evidence waited 2.0 s",
        "   evidence off cpu 50 %, late 20 ms, items 3",
        "   remedy   Do. (at most 2.0 times as fast)",
        "   remedy   Or.",
    ]


def _json(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["diagnose", str(path), "--json"]) == 0
    return capsys.readouterr().out


def test_of_several_traces_those_that_cannot_be_read_are_left_out_and_said_to_be(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "run.77.clt"
    empty.write_bytes(b"")

    assert main(["diagnose", str(path), str(empty)]) == 0
    assert "run.77.clt: is empty" in capsys.readouterr().err
    assert main(["report", str(empty), str(path), "-o", str(tmp_path / "page.html")]) == 0
    assert main(["diagnose", str(empty)]) == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("events", "GIL: held for 60 % of the time, waited for 9.0 ms (every wait, by the"),
        ("samples", "GIL: held for 100 % of the time (sampled, since the preloaded layer was not"),
    ],
)
def test_it_says_where_figures_about_the_gil_are_from(
    source: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    thread = builder.add_thread("worker")
    if source == "events":
        totals = {"waits": 3, "wait_ns": 9 * MS, "holds": 5, "held_ns": 60 * MS}
        builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=thread, **totals)
    else:
        for at in range(100):
            builder.add_gil_sample(at * MS, thread)
    builder.write(tmp_path / "gil.clt")

    assert main(["diagnose", str(tmp_path / "gil.clt")]) == 0

    assert said in capsys.readouterr().err
    assert json.loads(_json(tmp_path / "gil.clt", capsys))["gil_source"] == source


def test_parties_that_read_alike_are_one() -> None:
    site = {"file": "/bin/server", "line": 0, "function": "backward"}
    other = {"file": "/bin/server", "line": 0, "function": "forward"}
    parties = [
        {"site": place, "stack": [], "thread_s": share, "share": share}
        for place, share in ((other, 0.4), (site, 0.35), (site, 0.25))
    ]
    finding = {
        "kind": "serialised-by-lock",
        "severity": 0.5,
        "lock": None,
        "summary": "s",
        "victims": [],
        "culprits": parties,
        "evidence": {},
        "remedies": [],
    }

    causes = [line.split()[1:] for line in finding_lines(finding, 1) if " causes " in line]

    assert causes == [
        ["60", "%", "600", "ms", "backward", "(/bin/server:0)"],
        ["40", "%", "400", "ms", "forward", "(/bin/server:0)"],
    ]
