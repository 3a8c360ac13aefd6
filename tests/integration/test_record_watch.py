"""`record --watch` and SIGUSR1: who holds and who waits in a program that hangs, or does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.diagnosis import diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")

RING = """
import threading, time
left, right = threading.Lock(), threading.Lock()
def take(first, second):
    with first:
        gate.wait()
        with second:
            pass
gate = threading.Barrier(2)
for name, pair in (("one", (left, right)), ("two", (right, left))):
    threading.Thread(target=take, args=pair, name=name, daemon=True).start()
"""


class Program:
    """A recorded program, and what it prints."""

    def __init__(self, folder: Path, code: str, *options: str) -> None:
        self.script, self.trace = folder / "program.py", folder / "run.clt"
        self.script.write_text(code)
        command = [sys.executable, "-m", "contention_lab", "record", "-o", str(self.trace), "-q"]
        self.process = subprocess.Popen(
            [*command, *options, str(self.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self, word: str) -> None:
        """Wait for a line of its output."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if word in line:
                return
        pytest.fail(f"ended without {word}: {self.rest()[1]}")

    def report(self) -> str:
        """Wait for a whole report on its standard error stream."""
        assert self.process.stderr is not None
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if "the trace is written up to here" in line:
                return "".join(lines)
        pytest.fail("".join(lines))

    def rest(self) -> tuple[str, str]:
        """Let it end; what it printed."""
        return self.process.communicate("\n", timeout=60)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Program]]:
    programs: list[Program] = []
    yield programs
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
        program.process.communicate()


def start(started: list[Program], folder: Path, code: str, *options: str) -> Program:
    started.append(Program(folder, code, *options))
    return started[-1]


def test_a_deadlock_is_reported_while_it_lasts_and_the_program_goes_on(
    tmp_path: Path, started: list[Program]
) -> None:
    program = start(started, tmp_path, f"{RING}\ninput(); print('the end')\n", "--watch", "0.3")
    report = program.report()
    assert report.count("  holds threading.Lock") == 2
    assert report.count("  waits for threading.Lock") == 2
    assert f'File "{program.script}", line 7, in take' in report
    assert "taken in take (program.py:5)" in report
    assert "made at <module> (program.py:3)" in report
    ring = next(line for line in report.splitlines() if line.startswith("deadlock: "))
    assert ring.count(" waits for ") == 2
    assert '"one"' in ring
    assert '"two"' in ring
    out, err = program.rest()
    assert (out, err, program.process.returncode) == ("the end\n", "", 0)
    trace = cl.load(program.trace)
    assert not trace.problems
    assert diagnose(trace).verdict == "lock-order-deadlock"


def test_a_hang_can_be_ended_with_a_whole_trace(tmp_path: Path, started: list[Program]) -> None:
    code = f"{RING}\nfor thread in threading.enumerate()[1:]: thread.join()\n"
    program = start(started, tmp_path, code, "--watch", "0.3", "--abort")
    _, err = program.rest()
    assert program.process.returncode == -signal.SIGABRT
    assert "aborting" in err
    trace = cl.load(program.trace)
    assert trace.complete
    assert diagnose(trace).verdict == "lock-order-deadlock"


def test_the_trace_of_a_hang_that_is_killed_has_it(tmp_path: Path, started: list[Program]) -> None:
    program = start(started, tmp_path, f"{RING}\ninput()\n", "--watch", "0.3")
    program.report()
    program.process.kill()
    program.process.wait()
    trace = cl.load(program.trace)
    assert not trace.complete
    assert diagnose(trace).verdict == "lock-order-deadlock"


def test_it_works_while_a_thread_that_is_stuck_holds_the_gil(
    tmp_path: Path, started: list[Program]
) -> None:
    code = """
import ctypes, threading
lock = threading.Lock()
def wait():
    waits.set()
    with lock:
        pass
waits = threading.Event()
def hold():
    with lock:
        threading.Thread(target=wait, name="victim", daemon=True).start()
        waits.wait()
        while not any(f.f_lineno == 6 for f in frames()):
            pass
        ctypes.PyDLL(None).sleep(600)
def frames():
    import sys
    return sys._current_frames().values()
hold()
"""
    program = start(started, tmp_path, code, "--watch", "0.3")
    report = program.report()
    assert '"victim"' in report
    assert "  holds threading.Lock" in report
    assert "in hold" in report
    program.process.kill()


def test_a_thread_that_waits_for_itself_is_told(tmp_path: Path, started: list[Program]) -> None:
    code = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n"
    program = start(started, tmp_path, code, "--watch", "0.3", "--abort")
    _, err = program.rest()
    assert "waits for itself" in err


@pytest.mark.parametrize(
    "code",
    [
        "import queue, threading\nq = queue.Queue()\n"
        "threading.Thread(target=q.get, daemon=True).start()\n"
        "threading.Event().wait(1.2)\n",
        "import threading, time\nlock = threading.Lock()\n"
        "def work():\n    with lock: pass\n"
        "with lock:\n    thread = threading.Thread(target=work); thread.start()\n"
        "    end = time.monotonic() + 1.2\n    while time.monotonic() < end: pass\n"
        "thread.join()\n",
        "import threading, time\nlock = threading.Lock()\nwith lock: time.sleep(1.2)\n",
    ],
    ids=["idle", "busy holder", "a hold that nobody waits for"],
)
def test_a_program_that_does_not_hang_is_left_alone(
    tmp_path: Path, started: list[Program], code: str
) -> None:
    program = start(started, tmp_path, code, "--watch", "0.3", "--abort")
    assert program.rest() == ("", "")
    assert program.process.returncode == 0


def test_the_signal_reports_at_any_time_and_disturbs_nothing(
    tmp_path: Path, started: list[Program]
) -> None:
    code = """
import signal, threading, time
lock = threading.Lock()
print(signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL)
with lock:
    print("ready", flush=True)
    begun = time.monotonic()
    time.sleep(0.5)
    print("slept", time.monotonic() - begun >= 0.5)
    print("read", input())
"""
    program = start(started, tmp_path, code)
    program.says("ready")
    for _ in range(2):
        program.process.send_signal(signal.SIGUSR1)
        report = program.report()
        assert "holds threading.Lock" in report
        assert "deadlock" not in report
    out, err = program.rest()
    assert (out, err) == ("slept True\nread \n", "")
    assert program.process.returncode == 0


def test_a_handler_of_the_programs_own_wins_and_that_is_said(
    tmp_path: Path, started: list[Program]
) -> None:
    code = """
import signal, threading
called = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: (called.set(), print("mine", flush=True)))
print("ready", flush=True)
while not called.wait(0.1): pass
input()
"""
    program = start(started, tmp_path, code, "--watch", "0.3")
    program.says("ready")
    program.process.send_signal(signal.SIGUSR1)
    program.says("mine")
    assert program.process.stderr is not None
    assert "the program handles SIGUSR1 itself" in program.process.stderr.readline()
    assert program.rest()[1] == ""


def test_in_a_forked_child_the_signal_does_what_it_always_did(
    tmp_path: Path, started: list[Program]
) -> None:
    code = """
import os, signal, time, warnings
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    time.sleep(60)
time.sleep(0.2)
os.kill(child, signal.SIGUSR1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGUSR1)
"""
    assert start(started, tmp_path, code).rest() == ("True\n", "")


@pytest.mark.parametrize(
    "send",
    [
        "os.kill(os.getpid(), signal.SIGUSR1)",
        "signal.raise_signal(signal.SIGUSR1)",
        "signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)",
        "sender = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGUSR1)); "
        "sender.start(); sender.join()",
    ],
)
def test_a_program_that_sends_itself_the_signal_dies_of_it_as_without_us(
    tmp_path: Path, started: list[Program], send: str
) -> None:
    code = f"import os, signal, threading, time\nprint(1, flush=True)\n{send}\ntime.sleep(9)"
    program = start(started, tmp_path, code)
    assert program.rest() == ("1\n", "")
    assert program.process.returncode == -signal.SIGUSR1


def test_a_program_that_wants_the_signals_default_back_dies_of_it(
    tmp_path: Path, started: list[Program]
) -> None:
    code = """
import signal, time
theirs = signal.signal(signal.SIGUSR1, lambda *_: None)
print(theirs is signal.SIG_DFL)
print(signal.signal(signal.SIGUSR1, theirs) is not theirs, "ready", flush=True)
time.sleep(60)
"""
    program = start(started, tmp_path, code)
    program.says("ready")
    program.process.send_signal(signal.SIGUSR1)
    assert program.rest() == ("", "")
    assert program.process.returncode == -signal.SIGUSR1


def test_an_ignored_signal_stays_ignored(tmp_path: Path, started: list[Program]) -> None:
    code = "import signal; print(signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN); input()"
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        program = start(started, tmp_path, code)
    finally:
        signal.signal(signal.SIGUSR1, before)
    program.says("True")
    program.process.send_signal(signal.SIGUSR1)
    assert program.rest() == ("", "")
    assert program.process.returncode == 0


def test_who_has_permits_and_which_tasks_wait_is_reported(
    tmp_path: Path, started: list[Program]
) -> None:
    code = (
        "import asyncio, threading\n"
        "permits = threading.Semaphore(2)\n"
        "def keep():\n    permits.acquire()\n"
        "for name in ('one', 'two'):\n"
        "    keeper = threading.Thread(target=keep, name=name); keeper.start(); keeper.join()\n"
        "def want():\n    permits.acquire()\n"
        "threading.Thread(target=want, name='third', daemon=True).start()\n"
        "async def hold(lock):\n    async with lock: await asyncio.sleep(600)\n"
        "async def ask(lock):\n    async with lock: pass\n"
        "async def main():\n    lock = asyncio.Lock()\n"
        "    tasks = [asyncio.create_task(work(lock)) for work in (hold, ask)]\n"
        "    await asyncio.sleep(0.2)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.to_thread(input)\n"
        "    for task in tasks: task.cancel()\n"
        "asyncio.run(main())\n"
    )
    program = start(started, tmp_path, code)
    program.says("ready")
    program.process.send_signal(signal.SIGUSR1)
    report = program.report()
    assert "waits for threading.Semaphore" in report
    assert report.count("in keep (program.py:4)") == 2
    assert "waits for asyncio.Lock" in report
    assert "in hold (program.py:11)" in report
    assert f'File "{program.script}", line 13, in ask' in report
    assert report.count("\ntask ") == 1
    assert 'task "Task-3 ask"' in report
    assert program.rest()[0] == ""


TASKS = """
import asyncio, time
async def move(first, second):
    async with first:
        await asyncio.sleep(0.05)
        async with second: pass
async def keep(lock):
    async with lock: await asyncio.get_running_loop().create_future()
async def ask(lock):
    async with lock: pass
async def beat():
    while True: await asyncio.sleep(0.02)
async def get(queue):
    await queue.get()
def slow():
    time.sleep(2)
async def main(body, named):
    tasks = [asyncio.create_task(one, name=name) for name, one in named.items()]
    await body
    print('ready', flush=True)
    await asyncio.to_thread(input)
    for task in tasks: task.cancel()
async def ring():
    one, two = asyncio.Lock(), asyncio.Lock()
    named = {'left': move(one, two), 'right': move(two, one), 'clock': beat()}
    await main(asyncio.sleep(0.1), named)
async def kept():
    lock = asyncio.Lock()
    await main(asyncio.sleep(0.1), {'keeper': keep(lock), 'asker': ask(lock)})
async def idle():
    await main(asyncio.sleep(0.1), {'consumer': get(asyncio.Queue())})
async def blocked():
    async def body():
        slow()
    await main(body(), {'clock': beat()})
"""


def test_tasks_that_wait_for_each_other_are_told_while_others_go_on(
    tmp_path: Path, started: list[Program]
) -> None:
    program = start(started, tmp_path, f"{TASKS}\nasyncio.run(ring())", "--watch", "0.4")
    report = program.report()
    assert "nothing that waits in an event loop has moved for 0.4 s" in report
    for one, other in (("left", "right"), ("right", "left")):
        part = report.partition(f'\ntask "{one}"\n')[2].partition("\n")[0]
        assert part.startswith("  waits for asyncio.Lock")
        assert part.endswith(f'held by task "{other}"')


def test_a_task_that_waits_in_a_loop_where_nothing_happens_is_told(
    tmp_path: Path, started: list[Program]
) -> None:
    program = start(started, tmp_path, f"{TASKS}\nasyncio.run(kept())", "--watch", "0.4")
    report = program.report()
    assert 'task "asker"\n  waits for asyncio.Lock' in report
    assert 'held by task "keeper"' in report


def test_a_callback_that_keeps_its_event_loop_is_told(
    tmp_path: Path, started: list[Program]
) -> None:
    program = start(started, tmp_path, f"{TASKS}\nasyncio.run(blocked())", "--watch", "0.4")
    report = program.report()
    assert 'the event loop of "MainThread"' in report
    assert "has been in one callback for" in report


def test_a_task_that_waits_for_work_is_left_alone(tmp_path: Path, started: list[Program]) -> None:
    program = start(started, tmp_path, f"{TASKS}\nasyncio.run(idle())", "--watch", "0.2")
    program.says("ready")
    time.sleep(1.0)
    assert program.rest()[1] == ""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the kernel's account")
@pytest.mark.parametrize("options", [(), ("--subprocesses",)])
def test_no_child_has_a_handler_of_the_signal(
    tmp_path: Path, started: list[Program], options: tuple[str, ...]
) -> None:
    code = """
import multiprocessing, os, re, signal, subprocess, sys, warnings
warnings.simplefilter("ignore")
def catches(status):
    caught = int(re.search(r"SigCgt:\\s*([0-9a-f]+)", status)[1], 16)
    return bool(caught >> signal.SIGUSR1 - 1 & 1)
def own():
    return catches(open("/proc/self/status").read())
def tell():
    print("child", own(), flush=True)
if __name__ == "__main__":
    if (child := os.fork()) == 0:
        tell()
        os._exit(0)
    os.waitpid(child, 0)
    for method in "fork", "spawn":
        process = multiprocessing.get_context(method).Process(target=tell)
        process.start()
        process.join()
    status = "print(open('/proc/self/status').read())"
    command = [sys.executable, "-c", status]
    print("child", catches(subprocess.run(command, capture_output=True, text=True).stdout))
    print("parent", own())
"""
    out, err = start(started, tmp_path, code, *options).rest()
    assert (out, err) == ("child False\n" * 4 + "parent True\n", "")


def test_a_recording_within_a_program_leaves_the_signal_alone(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    calls = []
    signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
    try:
        with cl.record(tmp_path / "run.clt"):
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [1]


@pytest.mark.parametrize("options", [["--abort"], ["--watch", "0"], ["--watch", "soon"]])
def test_what_cannot_be_watched_is_a_mistake_of_usage(
    tmp_path: Path, started: list[Program], options: list[str]
) -> None:
    program = start(started, tmp_path, "print('ran')", *options)
    out, err = program.rest()
    assert out == ""
    assert "watch" in err
    assert program.process.returncode == 2
