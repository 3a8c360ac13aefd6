"""`record --live`, `record --sample`: a process beside a program that knows nothing of it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from contention_lab.trace import load

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, threading, time
end = time.monotonic() + 6
lock = threading.Lock()
def work():
    while time.monotonic() < end:
        with lock:
            time.sleep(0.05)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
try:
    os.wait()
except ChildProcessError:
    print("no child")
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc"),
]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "contention_lab", "record", *words]


def test_live_lines_go_to_stderr_and_leave_the_output_and_children_alone(script: Path) -> None:
    done = subprocess.run(
        command("--live", script.name), cwd=script.parent, capture_output=True, text=True
    )

    assert done.stdout == "no child\n"
    said = [line for line in done.stderr.splitlines() if "waited for" in line and "so far" in line]
    assert said
    assert all(line.startswith("contention-lab: lock: waited for ") for line in said)


def test_a_live_table_stays_in_place_on_a_terminal(script: Path) -> None:
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        command("--live", script.name), cwd=script.parent, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    drawn = b""
    try:
        while part := os.read(ours, 65536):
            drawn += part
    except OSError:  # nobody has the terminal any more
        pass
    finally:
        os.close(ours)
    output, _ = program.communicate(timeout=60)

    assert output == b"no child\n"
    assert b"longest" in drawn
    assert b"contended" in drawn


def test_samples_are_compared_with_events(script: Path) -> None:
    done = subprocess.run(
        command("--sample", script.name), cwd=script.parent, capture_output=True, text=True
    )
    if "no permission" in done.stderr:
        pytest.skip(done.stderr)

    assert done.stdout == "no child\n"
    trace, samples = script.with_suffix(".clt"), script.with_suffix(".samples.clt")
    for _ in range(100):  # it has to write its file after the program has ended
        if samples.exists():
            break
        time.sleep(0.1)
    assert load(samples).is_sampled
    assert not load(trace).is_sampled
    assert "samples in program.samples.clt" in done.stderr
    assert "`lock`: events " in done.stderr
    assert "disagree" not in done.stderr.lower()
