"""Channels in a process of their own: signals, forks, exit, and what a recording says of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.trace import Outcome, WaitFlag, WaitKind

if TYPE_CHECKING:
    from pathlib import Path

BUSY = """
import time
def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
"""


def start(code: str) -> subprocess.Popen[str]:
    """Run `code` in a fresh interpreter."""
    program = "import contention_lab as cl\nimport os, signal, threading, time, warnings\n"
    return subprocess.Popen(
        [sys.executable, "-c", program + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("wait", ["channel.receive()", "full.send(1)"])
def test_ctrl_c_interrupts_a_wait_and_leaves_the_channel_usable(wait: str) -> None:
    process = start(
        f"""
        channel, full = cl.Channel(), cl.Channel(maxsize=1)
        full.send(0)
        print("waiting", flush=True)
        try:
            {wait}
        except KeyboardInterrupt:
            channel.send(1)
            print(channel.receive(), full.receive(), len(full))
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "1 0 0\n", err


def test_a_handler_may_use_the_channel_that_its_thread_waits_for() -> None:
    process = start(
        """
        channel, seen = cl.Channel(), []
        def handler(*_):
            channel.send("mine")
            seen.append(channel.receive())
        signal.signal(signal.SIGUSR1, handler)
        def help():
            time.sleep(0.3)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            time.sleep(0.3)
            channel.send("theirs")
        threading.Thread(target=help).start()
        print(channel.receive(timeout=30), seen)
        """
    )
    out, err = process.communicate(timeout=60)
    assert out == "theirs ['mine']\n", err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_the_items_and_nobody_who_waits() -> None:
    process = start(
        """
        warnings.simplefilter("ignore")
        channel, full = cl.Channel(), cl.Channel(maxsize=1)
        full.send("kept")
        threading.Thread(target=channel.receive, daemon=True).start()
        for _ in range(3):
            threading.Thread(target=full.send, args=(1,), daemon=True).start()
        time.sleep(0.3)
        child = os.fork()
        if child == 0:
            channel.send(7)
            ok = channel.receive(timeout=5) == 7 and full.receive() == "kept" and len(full) == 0
            full.send(1, timeout=0)
            os._exit(7 if ok and full.receive() == 1 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    out, err = process.communicate(timeout=60)
    assert out == "7\n", err


def test_a_program_ends_while_daemons_wait() -> None:
    process = start(
        """
        channel, full = cl.Channel(), cl.Channel(maxsize=1)
        full.send(1)
        threading.Thread(target=channel.receive, daemon=True).start()
        threading.Thread(target=full.send, args=(1,), daemon=True).start()
        time.sleep(0.2)
        print("end")
        """
    )
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("end\n", "", 0)


def record(path: Path, code: str) -> cl.Trace:
    """Return the recording of a program."""
    body = textwrap.indent(BUSY + textwrap.dedent(code), "    ")
    script, trace = path / "program.py", str(path / "t.clt")
    imports = "import threading, time\nimport contention_lab as cl\n"
    script.write_text(f"{imports}with cl.record({trace!r}):\n{body}")
    subprocess.run([sys.executable, str(script)], check=True, timeout=120)
    return cl.load(trace)


def test_waits_for_an_item_name_the_channel_and_who_sent_it(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        """
        frames = cl.Channel("frames")
        def produce():
            for _ in range(30):
                work(0.03)
                frames.send(1)
            frames.close()
        def consume():
            for _ in frames:
                work(0.006)
        threads = [threading.Thread(target=t, name=t.__name__) for t in (produce, consume)]
        for t in threads: t.start()
        for t in threads: t.join()
        """,
    )
    lock = next(lock for lock in trace.locks.values() if lock.name == "frames")
    waits = trace.waits[trace.waits["lock"] == lock.id]
    assert lock.type == "Channel"
    assert len(waits) >= 5
    assert {*waits["kind"].tolist()} == {int(WaitKind.COORDINATION)}
    assert {*waits["outcome"].tolist()} == {int(Outcome.ACQUIRED)}
    assert not (waits["flags"] & int(WaitFlag.ROOM)).any()
    assert trace.stack(int(waits["stack"][0]))[0].function == "consume"
    wakers = {trace.thread(int(one)).name for one in waits["holder"]}
    assert wakers == {"produce"}
    assert trace.stack(int(waits["holder_stack"][0]))[0].function == "produce"
    found = cl.diagnose(trace)
    assert found.verdict == "starved-by-producer"


def test_waits_for_room_name_the_consumer(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        """
        pages = cl.Channel("pages", maxsize=2)
        def produce():
            for _ in range(30):
                pages.send(1)
        def consume():
            for _ in range(60):
                pages.receive()
                work(0.01)
        threads = [threading.Thread(target=t, name=t.__name__) for t in (produce, produce, consume)]
        for t in threads: t.start()
        for t in threads: t.join()
        """,
    )
    lock = next(lock for lock in trace.locks.values() if lock.name == "pages")
    waits = trace.waits[trace.waits["lock"] == lock.id]
    room = waits[(waits["flags"] & int(WaitFlag.ROOM)) != 0]
    assert len(room) >= 5
    assert {trace.thread(int(one)).name for one in room["holder"]} == {"consume"}
    assert trace.stack(int(room["stack"][0]))[0].function == "produce"
    assert cl.diagnose(trace).verdict == "backpressure"


def test_a_wait_that_is_seldom_needed_is_idle(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        """
        jobs = cl.Channel("jobs")
        def serve():
            for _ in jobs:
                pass
        thread = threading.Thread(target=serve)
        thread.start()
        for _ in range(5):
            time.sleep(0.1)
            jobs.send(1)
        jobs.close()
        thread.join()
        """,
    )
    assert "idle-wait" in {finding.kind for finding in cl.diagnose(trace).findings}
