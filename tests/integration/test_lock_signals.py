"""Signals, forks and dead holders: what a lock must survive in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

KINDS = [
    "Mutex()",
    "SpinLock()",
    "SpinLock(yield_after=10)",
    "SpinLock(park_after=1000)",
    "TicketLock()",
    "McsLock()",
    "AdaptiveMutex()",
    "RWLock()",
]


def start(code: str, *, recorded: str = "") -> subprocess.Popen[str]:
    """Run `code` in a fresh interpreter, under a recording to `recorded` if that is given."""
    program = "import contention_lab as cl\nfrom contention_lab.locks import *\n"
    body = textwrap.dedent(code)
    if recorded:
        body = f"with cl.record({recorded!r}):\n" + textwrap.indent(body, "    ")
    return subprocess.Popen(
        [sys.executable, "-c", program + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_interrupts_a_wait_for_a_holder_that_is_gone(
    kind: str, recorded: bool, tmp_path: Path
) -> None:
    trace = str(tmp_path / "t.clt") if recorded else ""
    process = start(
        f"""
        import threading
        lock = {kind}
        holder = threading.Thread(target=lock.acquire)
        holder.start()
        holder.join()
        print("waiting", flush=True)
        try:
            lock.acquire()
        except KeyboardInterrupt:
            print("interrupted", lock.locked(), flush=True)
        """,
        recorded=trace,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert out == "interrupted True\n", err
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs raise() of the C library")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_that_comes_just_before_the_sleep_interrupts_the_wait(
    kind: str, recorded: bool, tmp_path: Path
) -> None:
    process = start(
        f"""
        import ctypes, functools, operator, threading
        lock = {kind}
        holder = threading.Thread(target=lock.acquire)
        holder.start()
        holder.join()
        libc = ctypes.PyDLL(None)
        come = functools.partial(getattr(libc, "raise"), 2)
        try:  # no bytecode between the two, at which the interpreter would look for signals
            list(map(operator.call, [come, lock.acquire]))
        except KeyboardInterrupt:
            print("interrupted", lock.locked())
        """,
        recorded=str(tmp_path / "t.clt") if recorded else "",
    )
    out, err = process.communicate(timeout=20)
    assert out == "interrupted True\n", err


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_does_not_raise_lets_the_wait_go_on(kind: str) -> None:
    process = start(
        f"""
        import signal, threading, time
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        lock = {kind}
        lock.acquire()
        def release():
            time.sleep(0.3)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            time.sleep(0.2)
            lock.release()
        helper = threading.Thread(target=release)
        helper.start()
        start = time.monotonic()
        got = lock.acquire(timeout=30)
        print(got, seen, 0.4 < time.monotonic() - start < 15)
        helper.join()
        """
    )
    out, err = process.communicate(timeout=30)
    assert out == "True [1] True\n", err


def test_a_handler_may_use_locks_and_recordings_of_its_own(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a.clt"), str(tmp_path / "b.clt")
    process = start(
        f"""
        import signal, threading, time
        outer, inner = Mutex("outer"), Mutex("inner")
        session = cl.record({first!r})
        session.start()
        def handler(*_):
            with inner:
                pass
            session.stop()
            other = cl.record({second!r})
            with other:
                with inner:
                    pass
                inner.acquire()
                print(inner.acquire(timeout=0.01))
        signal.signal(signal.SIGUSR1, handler)
        outer.acquire()
        def release():
            time.sleep(0.2)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            time.sleep(0.3)
            outer.release()
        helper = threading.Thread(target=release)
        helper.start()
        print(outer.acquire(timeout=30))
        helper.join()
        one, two = cl.load({first!r}), cl.load({second!r})
        print(one.complete, two.complete, [lock.name for lock in two.locks.values()])
        """
    )
    out, err = process.communicate(timeout=40)
    assert out == "False\nTrue\nTrue True ['inner']\n", err


@pytest.mark.parametrize("kind", KINDS)
def test_a_waiter_never_holds_the_gil(kind: str) -> None:
    process = start(
        f"""
        import threading
        lock = {kind}
        lock.acquire()
        waiters = [threading.Thread(target=lock.acquire, daemon=True) for _ in range(4)]
        for waiter in waiters:
            waiter.start()
        print(sum(range(200_000)), flush=True)
        """
    )
    out, err = process.communicate(timeout=30)
    assert out == f"{sum(range(200_000))}\n", err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_recording_neither_records_nor_hangs(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "t.clt")
    process = start(
        """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        lock, stop = Mutex("shared"), threading.Event()
        def work():
            while not stop.is_set():
                with lock:
                    pass
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        bad = 0
        for _ in range(100):
            child = os.fork()
            if child == 0:
                lock._at_fork_reinit()
                with lock:
                    pass
                os._exit(7)
            bad += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7
        stop.set()
        for worker in workers:
            worker.join()
        print(bad)
        """,
        recorded=path,
    )
    out, err = process.communicate(timeout=60)
    assert out == "0\n", err
    import contention_lab as cl

    trace = cl.load(path)
    assert trace.complete
    assert not trace.problems


def test_leaving_the_with_block_in_a_forked_child_leaves_the_trace_alone(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "t.clt")
    process = start(
        f"""
        import os, sys
        lock = Mutex("m")
        with cl.record({path!r}):
            with lock:
                pass
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                with lock:
                    pass
        if child == 0:
            with cl.record({path + ".child"!r}):
                with lock:
                    pass
        """
    )
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    import contention_lab as cl

    parent, child = cl.load(path), cl.load(path + ".child")
    assert parent.complete
    assert child.complete
    for trace, acquires in ((parent, 2), (child, 1)):
        lock = next(lock.id for lock in trace.locks.values() if lock.name == "m")
        counters = trace.counters[trace.counters["lock"] == lock]
        assert int(counters["acquires"].sum()) == acquires


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_that_others_hold_and_wait_for_is_free_in_a_forked_child(kind: str) -> None:
    process = start(
        f"""
        import os, threading, time, warnings
        warnings.simplefilter("ignore")
        lock = {kind}
        lock.acquire()
        waiters = [threading.Thread(target=lock.acquire, args=(True, 60), daemon=True)
                   for _ in range(3)]
        for waiter in waiters:
            waiter.start()
        lock.acquire(timeout=0.2)  # they are in the queue by now, and this thread has left it
        child = os.fork()
        if child == 0:
            lock._at_fork_reinit()
            for _ in range(3):
                with lock:
                    pass
            helper = threading.Thread(target=lock.acquire)
            helper.start()
            helper.join()
            os._exit(7 if lock.locked() and not lock.acquire(timeout=0.01) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        os._exit(0)
        """
    )
    out, err = process.communicate(timeout=60)
    assert out == "7\n", err
