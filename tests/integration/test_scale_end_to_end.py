"""`contention-lab scale` from the command line to the page, with commands that take no time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import sys, threading
threads = int(sys.argv[1])
lock = threading.Lock()
def work():
    for _ in range(20):
        with lock:
            pass
workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
with open("runs.txt", "a") as runs:
    print(threads, file=runs)
print("warming up: 9:59")
print(f"total: 0:{60 // threads:02}")
"""


def scale(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "contention_lab", "scale", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bench.py").write_text(SCRIPT.replace("60 //", "40 //"))
    return tmp_path


def runs_made(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "runs.txt").read_text().split()]


def result_in(folder: Path, name: str = "bench") -> Any:
    return json.loads((folder / "reports" / name / "result.json").read_text())


def test_every_count_is_run_as_often_as_asked_and_the_printed_time_is_fitted(
    folder: Path,
) -> None:
    options = ("--threads", "1,2,4,8", "--repeats", "2", "--time-regex", "total: (.*)")
    done = scale(folder, *options, "--", sys.executable, "bench.py", "{threads}")

    assert done.returncode == 0, done.stderr
    assert sorted(runs_made(folder)) == [1, 1, 2, 2, 4, 4, 8, 8]
    result = result_in(folder)
    assert [point["median"] for point in result["points"]] == [40, 20, 10, 5]
    assert result["fit"]["verdict"]["kind"] == "scales"
    assert done.stdout == "reports/bench/report.html\n"
    assert done.stderr.splitlines()[0] == result["fit"]["verdict"]["summary"]
    assert "<html" in (folder / "reports/bench/report.html").read_text()


def test_each_count_can_be_recorded_as_well(folder: Path) -> None:
    options = ("--threads", "1,3", "--repeats", "1", "--record", "-o", "out")
    done = scale(folder, *options, "--work", "fixed", sys.executable, "bench.py", "{threads}")

    assert done.returncode == 0, done.stderr
    assert sorted(runs_made(folder)) == [1, 1, 3, 3]
    trace = cl.load(folder / "out" / "traces" / "bench-3.clt")
    assert any(lock.type.startswith("threading.Lock") for lock in trace.locks.values())
    assert "contention-lab diagnose out/traces/bench-3.clt" in done.stderr


def test_a_sweep_that_was_resumed_makes_only_what_is_missing(folder: Path) -> None:
    options = ("--repeats", "1", "--work", "fixed", "--resume")
    command = ("--", sys.executable, "bench.py", "{threads}")
    assert scale(folder, "--threads", "1,2", *options, *command).returncode == 0
    assert scale(folder, "--threads", "1,2,4", *options, *command).returncode == 0

    assert sorted(runs_made(folder)) == [1, 2, 4]
    assert [point["threads"] for point in result_in(folder)["points"]] == [1, 2, 4]


def test_another_command_does_not_continue_a_sweep(folder: Path) -> None:
    options = ("--threads", "1,2", "--repeats", "1", "--work", "fixed", "-o", "out", "--resume")
    assert scale(folder, *options, sys.executable, "bench.py", "{threads}").returncode == 0
    done = scale(folder, *options, sys.executable, "bench.py", "{threads}", "--other")

    assert done.returncode == 1
    assert "leave out --resume to start afresh" in done.stderr


def test_a_count_that_fails_is_missing_and_the_end_of_its_output_is_said(folder: Path) -> None:
    (folder / "bench.py").write_text(
        "import sys\nprint('begin')\n"
        "if sys.argv[1] == '2': sys.exit('no memory for two')\nprint('took 3 s')\n"
    )
    options = ("--threads", "1,2,4", "--repeats", "1", "--time-regex", r"took (\d+)")
    done = scale(folder, *options, "--work", "fixed", sys.executable, "bench.py", "{threads}")

    assert done.returncode == 1
    line = "bench at 2 threads, run 1: the process exited with status 1: begin | no memory for two"
    assert f"missing: {line}" in done.stderr
    assert "continue: contention-lab scale --resume --threads" in done.stderr
    assert [point["threads"] for point in result_in(folder)["points"]] == [1, 4]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--", "true"), 1, "no {threads} in the command"),
        (("--", "no-such-program", "{threads}"), 1, "no-such-program: command not found"),
        (("--rate-regex", "x(", "true", "{threads}"), 1, "--rate-regex 'x(': missing )"),
        (("--rate-regex", "x", "echo", "{threads}"), 1, "has no match for --rate-regex 'x'"),
        (("--threads", "0", "true", "{threads}"), 1, "give whole numbers from 1 up"),
        (("--time-regex", "a", "--rate-regex", "b", "true", "{threads}"), 2, "give one of the two"),
        (("false", "{threads}"), 1, "every run fails"),
        ((), 2, "Missing argument"),
    ],
)
def test_a_mistake_is_one_line(
    words: tuple[str, ...], status: int, said: str, tmp_path: Path
) -> None:
    done = scale(tmp_path, *words)

    assert done.returncode == status
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_ends_the_command_and_keeps_what_is_finished(folder: Path) -> None:
    (folder / "bench.py").write_text(
        textwrap.dedent(
            """
            import pathlib, sys, time
            if pathlib.Path("second").exists():
                print("hanging", flush=True)
                pathlib.Path("hangs").touch()
                time.sleep(600)
            pathlib.Path("second").touch()
            print("took 3 s")
            """
        )
    )
    options = ["--threads", "1,2", "--repeats", "1", "--time-regex", r"took (\d+)"]
    process = subprocess.Popen(
        [sys.executable, "-m", "contention_lab", "scale", *options, "--work", "fixed", "-o", "out",
         "--", sys.executable, "bench.py", "{threads}"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (folder / "hangs").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130, said
    assert "continue: contention-lab scale --resume" in said
    assert len(json.loads((folder / "out" / "result.json").read_text())["points"]) == 1
