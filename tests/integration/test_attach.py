"""`contention-lab attach` on programs that nobody prepared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.sampling.refusal import AttachError

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path(__file__).with_name("attached_programs.py")
COMMAND = (sys.executable, "-m", "contention_lab")


@contextmanager
def running(*arguments: str) -> Iterator[int]:
    """Run a program that reads its standard input, once it has said that it is ready."""
    program = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdin is not None
    try:
        program.stdout.readline()
        yield program.pid
    finally:
        program.stdin.close()
        program.stdout.close()
        try:
            program.wait(20)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def reason_to_skip() -> str:
    if sys.platform != "linux":
        return "the states of threads are read from Linux's /proc"
    from contention_lab.sampling.attachment import check

    with running(sys.executable, "-c", "print('ready', flush=True); input()") as pid:
        try:
            check(pid)
        except AttachError as error:
            return str(error)
    return ""


SKIP = reason_to_skip()
pytestmark = pytest.mark.skipif(bool(SKIP), reason=SKIP or "-")


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, cwd=folder, timeout=120
    )


def attached(kind: str, folder: Path, *options: str) -> dict[str, Any]:
    """Return the diagnosis of a program that was attached to for some seconds."""
    with running(sys.executable, str(PROGRAMS), kind) as pid:
        done = run("attach", str(pid), "-d", "3", "-o", "it.clt", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "wrote it.clt; next: contention-lab diagnose it.clt" in done.stdout
    found = run("diagnose", "--json", "it.clt", folder=folder)
    assert found.returncode == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


@pytest.mark.parametrize("options", [(), ("--native",)], ids=["", "native"])
def test_a_lock_held_across_a_sleep_is_found_with_who_has_it(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    found = attached("lock-bound", tmp_path, *options)

    assert found["verdict"] == "held-across-io"
    first = found["findings"][0]
    assert first["lock"]["name"] == "Store._lock"
    assert first["victims"][0]["site"]["function"] == "Store.write"
    assert first["culprits"][0]["site"]["function"] == "to_disk"
    assert first["evidence"]["waited_moments_low"] > 0.5
    assert "samples by py-spy" in found["not_seen"][0]


def test_spinning_is_found(tmp_path: Path) -> None:
    found = attached("spinning", tmp_path)

    assert found["verdict"] == "spin-collapse"
    assert found["findings"][0]["culprits"][0]["site"]["function"] == "spin"


def test_threads_that_want_the_gil_are_found_and_no_lock_is_accused(tmp_path: Path) -> None:
    found = attached("gil-bound", tmp_path)

    assert found["verdict"] == "gil-bound"
    assert all(finding["lock"] is None for finding in found["findings"])
    assert found["totals"]["gil_share"] > 0.5


@pytest.mark.parametrize(("kind", "verdict"), [("idle", "idle-wait"), ("serving", "healthy")])
def test_a_program_with_nothing_to_do_is_not_accused(
    tmp_path: Path, kind: str, verdict: str
) -> None:
    found = attached(kind, tmp_path)

    assert found["verdict"] == verdict
    assert all(finding["lock"] is None for finding in found["findings"])


def test_the_page_says_that_it_is_made_of_samples(tmp_path: Path) -> None:
    attached("lock-bound", tmp_path)

    made = run("report", "it.clt", "-o", "page.html", folder=tmp_path)

    assert made.returncode == 0, made.stderr
    page = (tmp_path / "page.html").read_text()
    assert "By samples" in page
    assert "samples by py-spy" in page


def refused(*words: str, folder: Path) -> str:
    """Return the one line that says why."""
    done = run("attach", *words, folder=folder)
    assert done.returncode == 1, done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("contention-lab: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not [*folder.glob("*.clt")]
    return lines[0]


def test_a_process_that_is_not_there(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    assert f"there is no process {gone.pid}" in refused(str(gone.pid), folder=tmp_path)


def test_a_process_that_is_no_python(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        line = refused(str(sleeper.pid), folder=tmp_path)
    finally:
        sleeper.kill()
        sleeper.wait()

    assert f"process {sleeper.pid} (sleep) is no running CPython" in line


def test_a_process_that_is_being_recorded(tmp_path: Path) -> None:
    code = "print('ready', flush=True); input()"
    trace = str(tmp_path / "recorded" / "run.clt")
    Path(trace).parent.mkdir()
    with running(*COMMAND, "record", "-q", "-o", trace, "-c", code) as pid:
        if "_layer" not in Path(f"/proc/{pid}/maps").read_text():
            pytest.skip("the native layer is not there")
        line = refused(str(pid), folder=tmp_path)

    assert f"process {pid} is being recorded by contention-lab" in line


def test_a_process_of_another_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes root, to become another user")
    from contention_lab.sampling import refusal

    with running(sys.executable, "-c", "print('ready', flush=True); input()") as pid:
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            said = str(refusal.not_permitted(pid))
            os._exit(0 if "belongs to another user (uid 0): sudo" in said else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_process_that_ends_meanwhile_leaves_what_was_seen(tmp_path: Path) -> None:
    code = (
        "import threading, time; print('ready', flush=True); "
        "l = threading.Lock(); l.acquire(); "
        "threading.Thread(target=l.acquire, daemon=True).start(); time.sleep(2.5)"
    )
    begun = time.monotonic()
    with running(sys.executable, "-c", code) as pid:
        done = run("attach", str(pid), "-d", "60", "-o", "it.clt", folder=tmp_path)

    assert time.monotonic() - begun < 40
    if done.returncode == 0:
        assert "wrote it.clt" in done.stdout
    else:  # on a busy machine it has ended before
        assert "ended before it was sampled" in done.stderr


def test_top_shows_the_locks_of_a_running_process_until_ctrl_c(tmp_path: Path) -> None:
    with running(sys.executable, str(PROGRAMS), "lock-bound") as pid:
        top = subprocess.Popen(
            [*COMMAND, "top", str(pid)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )
        assert top.stdout is not None
        seen = [line for _, line in zip(range(6), top.stdout, strict=False)]
        top.send_signal(signal.SIGINT)
        top.stdout.close()
        top.wait(60)

    assert sum(f"process {pid}, threads, on average: " in line for line in seen) == 2
    rows = [line for line in seen if line.startswith("Store._lock")]
    assert rows
    assert "Store.write" in rows[0]
    assert "to_disk" in rows[0]


@pytest.mark.parametrize("command", ["attach", "top"])
def test_nothing_goes_on_sampling_when_it_is_terminated(command: str, tmp_path: Path) -> None:
    with running(sys.executable, str(PROGRAMS), "lock-bound") as pid:
        sampler = subprocess.Popen(
            [*COMMAND, command, str(pid)],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while not spies(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert spies(pid)
        sampler.terminate()

        assert sampler.wait(30) == 128 + signal.SIGTERM
        assert not spies(pid)


def spies(pid: int) -> list[int]:
    """Return the processes of py-spy that record a process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = folder.joinpath("cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "record" in words[1:2] and str(pid) in words:
            found.append(int(folder.name))
    return found


def test_top_of_a_trace_of_samples_has_no_counts(tmp_path: Path) -> None:
    attached("lock-bound", tmp_path)

    shown = run("top", "it.clt", folder=tmp_path)

    assert shown.stdout.splitlines()[0].split() == [
        *("lock", "waiting", "of", "the", "time", "waits", "in", "seems", "to", "have", "it")
    ]
    assert shown.stdout.splitlines()[1].startswith("Store._lock")
    assert "samples, not a recording" in shown.stderr
