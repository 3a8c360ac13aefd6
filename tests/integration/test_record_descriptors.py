"""A program may close descriptors that are not its own; its files stay its own all the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from test_record_faults import environment, record

import contention_lab as cl

DAEMON = """
    import os, threading
    os.closerange(3, 1024)  # what a daemon begins with
    {before}
    files = [open(f"file{{number}}", "w+") for number in range(110)]
    lock = threading.Lock()
    for _ in range(100_000):
        with lock: pass
    print([file.name for file in files if os.fstat(file.fileno()).st_size])
    """


def ours() -> list[int]:
    """Descriptors of this process that lead to a trace."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.removesuffix(" (deleted)").endswith(".clt"):
            found.append(int(link.name))
    return found


def test_a_daemon_that_closes_all_descriptors_is_recorded_to_its_end(tmp_path: Path) -> None:
    code, out, err = record(tmp_path, DAEMON.format(before=""), "-o", "run.clt")
    assert (code, out) == (0, "[]\n")
    assert "wrote run.clt (100," in err
    trace = cl.load(tmp_path / "run.clt")
    assert trace.complete
    assert not trace.problems


def test_without_a_way_back_to_the_trace_nothing_is_written_and_it_is_said(tmp_path: Path) -> None:
    text = DAEMON.format(before='os.rename("run.clt", "moved.clt")')
    code, out, err = record(tmp_path, text, "-o", "run.clt")
    assert (code, out) == (0, "[]\n")
    assert "run.clt: the program closed its descriptor, so the trace ends there; 100," in err
    assert err.count("\n") == 1
    assert cl.load(tmp_path / "moved.clt").pid


def test_sockets_opened_after_that_get_nothing_that_nobody_sent(tmp_path: Path) -> None:
    code, out, _err = record(
        tmp_path,
        """
        import os, socket, threading, time
        os.closerange(3, 1024)
        os.unlink("run.clt")
        pairs = [socket.socketpair() for _ in range(60)]
        lock = threading.Lock()
        for _ in range(1000):
            with lock: pass
        time.sleep(0.2)
        for end in [end for pair in pairs for end in pair]:
            end.setblocking(False)
            try:
                print(len(end.recv(1 << 20)))
            except BlockingIOError:
                pass
        """,
        "-o",
        "run.clt",
    )
    assert (code, out) == (0, "")


def test_the_end_closes_no_descriptor_that_is_the_programs(tmp_path: Path) -> None:
    session = cl.record(tmp_path / "run.clt")
    session.start()
    (mine,) = ours()
    (tmp_path / "run.clt").unlink()
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), mine)
        session.stop()
        os.fstat(mine)
        os.close(mine)
        assert other.seek(0, os.SEEK_END) == 0


def test_a_forked_child_closes_no_descriptor_that_is_the_programs(tmp_path: Path) -> None:
    with cl.record(tmp_path / "run.clt"):
        (mine,) = ours()
        with (tmp_path / "other").open("wb") as other:
            os.dup2(other.fileno(), mine)
            child = os.fork()
            if child == 0:
                try:
                    os.fstat(mine)
                except OSError:
                    os._exit(1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        os.close(mine)


def test_sampling_takes_no_number_that_the_program_counts_on(tmp_path: Path) -> None:
    """The lowest free descriptor is the next, at every moment, and /proc is read all the same."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, threading, time\n"
        "lock = threading.Lock()\n"
        "def work():\n"
        "    for _ in range(40):\n"
        "        with lock: time.sleep(0.002)\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[thread.start() for thread in threads]\n"
        "numbers = set()\n"
        "while threads[0].is_alive():\n"
        "    fd = os.open(os.devnull, os.O_RDONLY)\n"
        "    numbers.add(fd)\n"
        "    os.close(fd)\n"
        "[thread.join() for thread in threads]\n"
        "print(len(numbers))\n"
    )
    trace = tmp_path / "run.clt"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "contention_lab",
            "record",
            "--no-native-layer",
            "-o",
            str(trace),
            str(script),
        ],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=100,
        check=True,
    )
    assert run.stdout == "1\n"
    assert len(cl.load(trace).load) > 0


def test_a_second_recording_in_another_thread_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)
    refused: list[str] = []
    recorded: list[str] = []
    (tmp_path / "two1.clt").write_bytes(b"")

    def start(number: int) -> None:
        session = cl.record(tmp_path / f"two{number}.clt")
        barrier.wait()
        try:
            session.start()
        except RuntimeError as error:
            refused.append(str(error))
            barrier.wait()
        else:
            recorded.append(session.path)
            barrier.wait()
            session.stop()

    threads = [threading.Thread(target=start, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recorded) == 1
    assert len(refused) == 3
    assert all("already recording to" in text and "started by /" in text for text in refused)
    assert not ours()
    filled = [str(path) for path in tmp_path.iterdir() if path.stat().st_size]
    assert filled == recorded
    assert len([*tmp_path.iterdir()]) <= 2
