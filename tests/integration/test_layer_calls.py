"""Calls of the C library in which the holder of a lock was blocked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from layer_programs import (
    Run,
    compiled,
    functions,
    length_ns,
    needs_compiler,
    needs_layer,
    run_recorded,
)

from contention_lab.trace.layer_schema import BlockingFlag, WorldCall

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

pytestmark = needs_layer
MS = 1_000_000


def run(folder: Path, program: str, *arguments: str) -> Run:
    done = run_recorded(folder, program, *arguments)
    assert done.status == 0, done.err
    return done


def calls(trace: Trace, function: str) -> list[tuple[str, Any]]:
    """Return the name of each call with its record, of those made in a function of the program."""
    return [
        (WorldCall(int(event["call"])).name, event)
        for event in trace.blocking
        if function in functions(trace, event["stack"])
    ]


def test_a_lock_held_across_recv_names_the_call_the_lock_and_the_code(tmp_path: Path) -> None:
    program = """
    import socket, threading, time

    lock = threading.Lock()
    here, there = socket.socketpair()

    def answer():
        for _ in range(3):
            there.recv(1)
            time.sleep(0.02)
            there.send(b"x")

    def ask():
        with lock:
            here.send(b"x")
            here.recv(1)

    server = threading.Thread(target=answer)
    clients = [threading.Thread(target=ask) for _ in range(3)]
    for thread in [server, *clients]:
        thread.start()
    for thread in [server, *clients]:
        thread.join()
    """
    trace = run(tmp_path, program).trace

    received = [event for name, event in calls(trace, "ask") if name == "RECV"]

    assert len(received) == 3
    assert all(length_ns(event) >= 20 * MS for event in received)
    assert {trace.lock(int(event["lock"])).type for event in received} == {"threading.Lock"}
    assert len({int(event["thread"]) for event in received}) == 3
    assert functions(trace, received[0]["stack"])[0] == "ask"
    assert not calls(trace, "answer"), "it holds nothing"


CALLS = {
    "READ": "os.read(pipe[0], 1)",
    "SLEEP": "time.sleep(0.03)",
    "SELECT": "select.select([pipe[0]], [], [], 0.03)",
    "POLL": "poll.poll(30)",
    "EPOLL_WAIT": "epoll.poll(0.03)",
    "WAITPID": "subprocess.run(['sleep', '0.03'])",
    "ACCEPT": "accept()",
    "FLOCK": "flock(path)",
    "FCNTL_LOCK": "lockf(path)",
    "SIGWAIT": "signal.sigtimedwait([signal.SIGUSR1], 0.03)",
}


@pytest.mark.parametrize("name", CALLS)
def test_every_kind_of_blocking_call_has_its_name(tmp_path: Path, name: str) -> None:
    program = f"""
    import fcntl, os, select, signal, socket, subprocess, sys, threading, time

    lock = threading.Lock()
    path = "file"
    pipe = os.pipe()
    poll = select.poll()
    poll.register(pipe[0])
    epoll = select.epoll()
    epoll.register(pipe[0])

    def later(what):
        threading.Timer(0.03, what).start()

    def accept():
        server = socket.create_server(("127.0.0.1", 0))
        later(lambda: socket.create_connection(server.getsockname()))
        server.settimeout(None)
        server.accept()

    def locked_by_another(code):
        code = "import fcntl, time\\nfile = open('file', 'w')\\n" + code
        other = subprocess.Popen(
            [sys.executable, "-c", code + "\\nprint(flush=True); time.sleep(0.1)"],
            stdout=subprocess.PIPE,
        )
        other.stdout.readline()
        return open("file", "w")

    def flock(path):
        fcntl.flock(locked_by_another("fcntl.flock(file, fcntl.LOCK_EX)"), fcntl.LOCK_EX)

    def lockf(path):
        fcntl.lockf(locked_by_another("fcntl.lockf(file, fcntl.LOCK_EX)"), fcntl.LOCK_EX)

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    if "READ" == "{name}":
        later(lambda: os.write(pipe[1], b"x"))
    with lock:
        {CALLS[name]}
    """
    trace = run(tmp_path, program).trace

    found = [event for kind, event in calls(trace, "<module>") if kind == name]

    assert found
    assert max(map(length_ns, found)) >= 5 * MS


def test_without_a_lock_nothing_is_recorded(tmp_path: Path) -> None:
    program = """
    import threading, time
    lock = threading.Lock()
    with lock:
        pass
    time.sleep(0.01)
    """
    assert not len(run(tmp_path, program).trace.blocking)


def test_a_lock_that_another_thread_releases_is_held_by_nobody(tmp_path: Path) -> None:
    program = """
    import threading, time
    signal = threading.Lock()

    def consume():
        for _ in range(5):
            signal.acquire()
            time.sleep(0.002)

    signal.acquire()
    thread = threading.Thread(target=consume)
    thread.start()
    for _ in range(5):
        while not signal.locked():
            time.sleep(0.001)
        time.sleep(0.002)
        signal.release()
    thread.join()
    """
    sleeps = calls(run(tmp_path, program).trace, "consume")

    assert len(sleeps) <= 1, "before the first release by another thread nobody can know"


def test_the_innermost_lock_is_named(tmp_path: Path) -> None:
    program = """
    import threading, time
    outer, inner = threading.RLock(), threading.Lock()

    def work():
        with outer:
            with inner:
                time.sleep(0.002)
            time.sleep(0.002)

    work()
    """
    trace = run(tmp_path, program).trace

    types = [trace.lock(int(event["lock"])).type for _, event in calls(trace, "work")]

    assert types == ["threading.Lock", "threading.RLock"]


@needs_compiler
def test_a_call_that_keeps_the_gil_has_the_stack_of_the_next_release(tmp_path: Path) -> None:
    library = compiled(
        tmp_path, "#include <unistd.h>\nvoid nap(void) { usleep(5000); }\n", "napping"
    )
    program = """
    import ctypes, sys, threading
    nap = ctypes.PyDLL(sys.argv[1]).nap
    lock = threading.Lock()

    def work():
        with lock:
            nap()

    work()
    """
    trace = run(tmp_path, program, library).trace

    [(name, event)] = calls(trace, "work")

    assert name == "SLEEP"
    assert int(event["flags"]) & BlockingFlag.STACK_LATER


def test_a_program_that_hangs_in_a_call_says_in_which(tmp_path: Path) -> None:
    program = """
    import os, threading, time
    lock = threading.Lock()
    pipe = os.pipe()

    def hang():
        with lock:
            os.read(pipe[0], 1)

    threading.Thread(target=hang, daemon=True).start()
    time.sleep(0.1)
    """
    trace = run(tmp_path, program).trace

    [event] = [event for event in trace.blocking if int(event["flags"]) & BlockingFlag.OPEN]

    assert WorldCall(int(event["call"])) is WorldCall.READ
    assert length_ns(event) >= 50 * MS


def test_errors_of_calls_are_what_they_were(tmp_path: Path) -> None:
    program = """
    import errno, os, socket, threading, time
    lock = threading.Lock()
    with lock:
        time.sleep(0.001)
        for call in (lambda: os.read(999, 1), lambda: os.open("/nowhere/at/all", os.O_RDONLY),
                     lambda: os.fsync(999), lambda: socket.socket().recv(1)):
            try:
                call()
            except OSError as error:
                print(errno.errorcode[error.errno])
    file = os.open("made", os.O_CREAT | os.O_WRONLY, 0o600)
    print(oct(os.fstat(file).st_mode & 0o777))
    """
    assert run(tmp_path, program).out.split() == [
        "EBADF",
        "ENOENT",
        "EBADF",
        "ENOTCONN",
        "0o600",
    ]
