"""`record --functions`: functions, waits and holds on one timeline; the program is as ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import contention_lab as cl
from contention_lab.capture import functions, launch
from contention_lab.capture.request import Request
from contention_lab.export.export_format import ExportError
from contention_lab.export.function_timeline import write

pytest.importorskip("viztracer")
ROOT = Path(cl.__path__[0]).parent
WAIT_S = 0.2
CLOSE_US = 500.0
"""The two recorders look at the clock some instructions apart; on a busy machine a thread may lose
its core in between."""
SAME_US = 1.5
"""By how much the clocks of the two recorders may differ."""

PROGRAM = f"""
import threading, time

lock = threading.Lock()

def holder():
    with lock:
        held.set()
        time.sleep({WAIT_S})

def victim():
    held.wait()
    lock.acquire()
    lock.release()

held = threading.Event()
threads = [threading.Thread(target=holder), threading.Thread(target=victim)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

BEHAVIOURS = {
    "names, modules and arguments": """
import sys, threading
def work():
    print(threading.current_thread().name)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()
print(threading.Thread().name, len(threading.enumerate()), sys.argv, sys.orig_argv)
heavy = {"viztracer", "snaptrace", "numpy", "json", "multiprocessing", "trio"}
print(sorted(heavy & set(sys.modules)), threading.current_thread.__module__)
""",
    "an exception": "def f():\n    g()\ndef g():\n    raise ValueError('wrong')\nf()\n",
    "an exit status": "import sys\ndef f():\n    sys.exit(7)\nf()\n",
    "an end without exit handlers": "import os\nprint(1, flush=True)\nos._exit(5)\n",
    "a profiler of its own": """
import cProfile
def f():
    return 1
profile = cProfile.Profile()
profile.runcall(f)
profile.create_stats()
print(sorted(name for _, _, name in profile.stats))
""",
    "a generator and a recursion": """
def count(n):
    yield n
    if n:
        yield from count(n - 1)
def deep(n):
    return deep(n - 1) if n else 0
print(list(count(5)))
try:
    deep(100_000)
except RecursionError as error:
    print(error)
""",
}
FORKED = """
import os, sys
pid = os.fork()
def f():
    return 1
f()
if pid:
    status = os.waitpid(pid, 0)[1]
    print(os.waitstatus_to_exitcode(status))
sys.exit(3)
"""


def recorded(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Record a program with its functions."""
    (folder / "program.py").write_text(text)
    record = ("-m", "contention_lab", "record", "--functions", *options)
    return python(folder, *record, "-o", "run.clt", "program.py", "a", "-b")


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def timeline(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "run.functions.json").read_text())
    return document


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    result = recorded(folder, PROGRAM)
    assert result.returncode == 0, result.stderr
    assert "run.functions.json (" in result.stderr
    assert "next: contention-lab diagnose run.clt, contention-lab view run.functions.json" in (
        result.stderr
    )
    return folder


def spans(document: dict[str, Any], start: str) -> list[dict[str, Any]]:
    """Return the spans whose names start so."""
    return [
        event
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["name"].startswith(start)
    ]


def bounds(span: dict[str, Any]) -> tuple[float, float]:
    return span["ts"], span["ts"] + span["dur"]


def test_a_call_that_waits_encloses_the_wait_within_microseconds(example: Path) -> None:
    document = timeline(example)
    (wait,) = spans(document, "wait: lock")
    begin, end = bounds(wait)
    calls = [call for call in spans(document, "victim (") if call["ts"] < begin]
    acquires = [
        call
        for call in document["traceEvents"]
        if call["ph"] == "X" and call["name"].endswith("acquire") and call["dur"] > WAIT_S * 5e5
    ]

    (call,) = calls
    (acquire,) = [one for one in acquires if one["tid"] == call["tid"]]
    assert wait["dur"] > WAIT_S * 5e5
    for_gil = [one for one in spans(document, "wait: GIL") if one["tid"] == wait["tid"]]
    end = max([end, *(bounds(one)[1] for one in for_gil if begin < one["ts"] < end + CLOSE_US)])
    for outer in (call, acquire):
        assert bounds(outer)[0] - SAME_US <= begin
        assert end <= bounds(outer)[1] + SAME_US
    assert begin - acquire["ts"] < CLOSE_US
    assert bounds(acquire)[1] - end < CLOSE_US


def test_a_hold_covers_the_function_that_sleeps_under_it(example: Path) -> None:
    document = timeline(example)
    (hold,) = spans(document, "hold: lock")
    (sleep,) = [span for span in spans(document, "time.sleep") if span["dur"] > WAIT_S * 5e5]

    assert bounds(hold)[0] <= sleep["ts"] + SAME_US
    assert bounds(sleep)[1] <= bounds(hold)[1] + SAME_US


def test_waits_and_holds_lie_under_the_functions_of_their_thread(example: Path) -> None:
    document = timeline(example)
    names = {
        event["tid"]: event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "thread_name"
    }
    by_lane = [names[tid] for tid in sorted(names)]
    victim = names[spans(document, "victim (")[0]["tid"]]
    holder = names[spans(document, "holder (")[0]["tid"]]

    assert victim.endswith("(victim)")
    assert by_lane[by_lane.index(victim) + 1] == f"waits: {victim}"
    assert f"holds: {holder}" in by_lane[by_lane.index(holder) :][:3]
    assert names[spans(document, "wait: lock")[0]["tid"]] == f"waits: {victim}"
    assert names[spans(document, "hold: lock")[0]["tid"]] == f"holds: {holder}"
    assert next(iter(names[tid] for tid in sorted(names))) == "MainThread"


def test_an_arrow_leads_from_the_release_to_the_acquire(example: Path) -> None:
    document = timeline(example)
    ends = {event["ph"]: event for event in document["traceEvents"] if event["ph"] in "sf"}
    (hold,) = spans(document, "hold: lock")
    (wait,) = spans(document, "wait: lock")

    assert ends["s"]["tid"] == hold["tid"]
    assert ends["f"]["tid"] == wait["tid"]
    assert bounds(hold)[1] - ends["s"]["ts"] == pytest.approx(0.001, abs=0.0005)
    assert bounds(wait)[1] - ends["f"]["ts"] == pytest.approx(0.001, abs=0.0005)


def test_a_counter_says_how_many_wait(example: Path) -> None:
    document = timeline(example)
    points = [event for event in document["traceEvents"] if event["ph"] == "C"]

    assert {point["name"] for point in points} == {"waiting: lock"}
    assert max(point["args"]["threads"] for point in points) == 1


def test_our_own_functions_are_not_among_them(example: Path) -> None:
    assert not [
        event
        for event in timeline(example)["traceEvents"]
        if "contention_lab" in event["name"] and ".py:" in event["name"]
    ]


def test_no_other_file_is_left(example: Path) -> None:
    assert {path.name for path in example.iterdir()} == {
        "program.py",
        "run.clt",
        "run.functions.json",
    }


@pytest.mark.parametrize("text", BEHAVIOURS.values(), ids=BEHAVIOURS)
def test_a_program_does_what_it_does_without(tmp_path: Path, text: str) -> None:
    result = recorded(tmp_path, text, "-q")
    plain = python(tmp_path, "program.py", "a", "-b")

    assert result.stdout == plain.stdout
    assert result.stderr == plain.stderr
    assert result.returncode == plain.returncode
    assert timeline(tmp_path)["otherData"]["functions"] > 0


def test_a_forked_child_leaves_the_functions_to_its_parent(tmp_path: Path) -> None:
    result = recorded(tmp_path, FORKED, "-q")

    assert (result.stdout, result.stderr, result.returncode) == ("3\n", "", 3)
    assert spans(timeline(tmp_path), "f (")


def test_calls_that_were_dropped_are_told(tmp_path: Path) -> None:
    text = "def f():\n    pass\nfor _ in range(5000):\n    f()\n"
    result = recorded(tmp_path, text, "--function-entries", "1000")

    assert "(1,000 function calls, none that ended before" in result.stderr
    assert "--function-entries keeps more" in result.stderr
    assert timeline(tmp_path)["otherData"]["functions missing before ns"] > 0
    assert len(spans(timeline(tmp_path), "f (")) > 900


def test_a_file_of_functions_that_is_cut_is_refused(example: Path, tmp_path: Path) -> None:
    trace = cl.load(example / "run.clt")
    for text in ("", '{"traceEvents":[{"pid":1,"tid":1,"ts":1.0,"ph":"X","dur":1'):
        (tmp_path / "raw").write_text(text)
        with (
            (tmp_path / "raw").open("rb") as raw,
            (tmp_path / "made").open("wb") as made,
            pytest.raises(ExportError, match="viztracer"),
        ):
            write(trace, raw, made)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--function-entries", "5000", "x.py"], "--function-entries goes with --functions"),
        (["--functions", "--function-entries", "7", "x.py"], "give a whole number from 1,000 to"),
    ],
)
def test_a_mistyped_option_is_explained(tmp_path: Path, options: list[str], said: str) -> None:
    result = python(tmp_path, "-m", "contention_lab", "record", *options)

    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_without_viztracer_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "find", lambda: "")

    with pytest.raises(launch.LaunchError, match="pip install viztracer"):
        launch.launch(Request(["x.py"], functions=1000), [])
