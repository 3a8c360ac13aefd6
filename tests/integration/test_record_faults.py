"""What goes wrong around a recording is not the program's problem; and the line at the end."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(cl.__path__[0]).parent
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1  # of Linux
COUNTED = r"[\d,]+ acquires, [\d,]+ contended, \S+ s waited"
PROGRAM = "import threading\nlock = threading.Lock()\nfor _ in range(50):\n    with lock: pass\n"


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths}


def start(
    folder: Path, *arguments: str, before: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "contention_lab", "record", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(),
        preexec_fn=before,
    )


def record(
    folder: Path, text: str, *options: str, before: Callable[[], None] | None = None
) -> tuple[int, str, str]:
    (folder / "program.py").write_text(textwrap.dedent(text))
    process = start(folder, *options, "program.py", before=before)
    try:
        out, err = process.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it hangs: {out}{err}") from None
    return process.returncode, out, err


def test_one_line_says_where_the_trace_is_and_what_to_type_next(tmp_path: Path) -> None:
    status, out, err = record(tmp_path, PROGRAM + "print('done')")

    assert (status, out) == (0, "done\n")
    assert re.fullmatch(
        rf"contention-lab: wrote program\.clt \({COUNTED}\); "
        r"next: contention-lab diagnose program\.clt\n",
        err,
    )
    acquires = int(re.search(r"([\d,]+) acquires", err)[1].replace(",", ""))  # type: ignore[index]
    assert acquires == int(cl.load(tmp_path / "program.clt").counters["acquires"].sum()) >= 50


def test_quiet_means_quiet(tmp_path: Path) -> None:
    assert record(tmp_path, PROGRAM, "--quiet") == (0, "", "")
    assert cl.load(tmp_path / "program.clt").complete


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (("program.py",), "program.clt"),
        (("-m", "program"), "program.clt"),
        (("-c", "import program"), "command.clt"),
        (("folder/",), "folder.clt"),
    ],
)
def test_the_trace_is_called_after_the_program(
    program: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(PROGRAM)

    _, err = start(tmp_path, *program).communicate(timeout=60)

    assert f"wrote {name} " in err
    assert [path.name for path in tmp_path.glob("*.clt")] == [name]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "nowhere/run.clt"), "nowhere/run.clt: No such file or directory, so there is no"),
        (("-o", "/dev/full"), "/dev/full: No space left on device, so there is no trace"),
        (("-o", "program.py/x"), "program.py/x: Not a directory, so there is no trace"),
        (("-q", "-o", "nowhere/run.clt"), "nowhere/run.clt: No such file or directory, so there"),
    ],
)
def test_a_trace_that_cannot_be_written_does_not_stop_the_program(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    status, out, err = record(tmp_path, PROGRAM + "print('done'); raise SystemExit(3)", *options)

    assert (status, out) == (3, "done\n")
    assert err.startswith(f"contention-lab: {said}")
    assert err.count("\n") == 1
    assert int(re.search(r"([\d,]+) acquires", err)[1].replace(",", "")) >= 50  # type: ignore[index]


def like_anybody() -> None:
    """Give up root's right to write any file, in what this process executes."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def test_a_read_only_trace_does_not_stop_the_program(tmp_path: Path) -> None:
    assert record(tmp_path, PROGRAM, "-q")[0] == 0
    (tmp_path / "program.clt").chmod(0o444)

    status, _, err = record(tmp_path, PROGRAM, before=like_anybody)

    assert status == 0
    assert "program.clt: Permission denied, so there is no trace" in err


def test_a_full_disk_ends_the_trace_and_not_the_program(tmp_path: Path) -> None:
    status, out, err = record(
        tmp_path,
        """
        import resource, threading, time
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        locks = [threading.Lock() for _ in range(500)]
        for _ in range(3):
            for lock in locks:
                with lock: pass
            time.sleep(0.06)
        print("done")
        """,
    )

    assert (status, out) == (0, "done\n")
    assert re.fullmatch(
        rf"contention-lab: program\.clt: File too large, so the trace ends there; {COUNTED}\n", err
    )
    assert int(re.search(r"([\d,]+) acquires", err)[1].replace(",", "")) >= 1500  # type: ignore[index]
    trace = cl.load(tmp_path / "program.clt")
    assert not trace.complete
    assert trace.meta["argv"] == ["program.py"]


def test_a_file_too_large_sends_the_program_no_signal(tmp_path: Path) -> None:
    status, out, err = record(
        tmp_path,
        """
        import os, resource, signal, threading, warnings
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        lock = threading.Lock()
        if (child := os.fork()) == 0:
            with lock:
                pass
            raise SystemExit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        "--subprocesses",
    )

    assert (status, out) == (0, "5\n")
    assert re.fullmatch(
        rf"contention-lab: program\.clt: File too large, so the trace ends there; {COUNTED}\n", err
    )


@pytest.mark.parametrize("nobody_reads", ["stderr", "stdout"])
def test_a_line_that_nobody_reads_sends_the_program_no_signal(
    nobody_reads: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(
        "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\ninput()\n" + PROGRAM
    )
    with subprocess.Popen(
        [sys.executable, "-m", "contention_lab", "record", "program.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    ) as process:
        getattr(process, nobody_reads).close()
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(60) == 0

    assert cl.load(tmp_path / "program.clt").complete


def test_a_folder_that_goes_away_does_not_stop_the_program(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    status, out, err = record(
        tmp_path,
        PROGRAM + "import shutil; shutil.rmtree('traces'); print('done')",
        "-o",
        "traces/run.clt",
    )

    assert (status, out) == (0, "done\n")
    assert re.fullmatch(
        rf"contention-lab: traces/run\.clt: removed or replaced [a-z ]+; {COUNTED}\n", err
    )


def test_a_file_that_is_not_a_trace_is_refused_before_the_program_runs(tmp_path: Path) -> None:
    status, out, err = record(tmp_path, "print('ran')", "-o", "program.py")

    assert (status, out) == (1, "")
    assert "program.py: this file is not a trace and is not replaced" in err
    assert (tmp_path / "program.py").read_text() == "print('ran')"


def test_interpreters_without_start_up_files_are_refused_with_one_line(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from contention_lab.cli import main; "
    code += "sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(ROOT), "record", "-c", "print(1)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "contention-lab: record works through Python's start-up files: leave out -I, -E and -S\n"
    )


def test_the_same_program_can_be_recorded_twice_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("input()\n" + PROGRAM)
    processes = []
    for _ in range(2):
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "contention_lab", "record", "program.py"],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                env=environment(),
            )
        )
        deadline = time.monotonic() + 20
        while len([*tmp_path.glob("*.clt")]) < len(processes) and time.monotonic() < deadline:
            time.sleep(0.01)
    said = [process.communicate("\n", timeout=60)[1] for process in processes]

    assert "wrote program.clt" in said[0]
    assert f"wrote program.{processes[1].pid}.clt" in said[1]
    traces = [cl.load(path) for path in tmp_path.glob("*.clt")]
    assert [trace.complete for trace in traces] == [True, True]
    assert {trace.pid for trace in traces} == {process.pid for process in processes}


def test_a_recording_in_a_recorded_program_is_refused_by_the_name_of_the_first(
    tmp_path: Path,
) -> None:
    status, _, err = record(
        tmp_path, "import contention_lab as cl\nwith cl.record('other.clt'): pass", "-q"
    )

    assert status == 1
    assert re.search(
        r"already recording to .*program\.clt \(started by contention-lab record\)", err
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_recorded_before_a_deadly_signal_can_be_read(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(
        "import threading, time\nlock, waits = threading.Lock(), []\n"
        "def work():\n"
        "    while True:\n"
        "        start = time.perf_counter()\n"
        "        with lock:\n"
        "            if time.perf_counter() - start > 0.0005: waits.append(1)\n"
        "            time.sleep(0.001)\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "while len(waits) < 150: time.sleep(0.01)\n"
        "time.sleep(0.2)\nprint('now', flush=True)\ntime.sleep(60)\n"
    )
    process = start(tmp_path, "-q", "program.py")
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(number)
    process.communicate(timeout=60)

    assert process.returncode == -number
    trace = cl.load(tmp_path / "program.clt")
    assert not trace.complete
    assert len(trace.waits) > 50
    # An editable install loads modules of its own before anything can be recorded; else nothing is
    # left out.
    editable = any(name.startswith("__editable__") for name in sys.modules)
    unseen = {(entry["what"], entry["why"][:25]) for entry in trace.meta["not_seen"]}
    assert unseen <= ({("threading.RLock", "made before the recording")} if editable else set())


def test_threads_that_the_end_stops_leave_a_complete_trace(tmp_path: Path) -> None:
    status, _, err = record(
        tmp_path,
        """
        import threading, time
        lock = threading.Lock()
        def work():
            while True:
                with lock:
                    time.sleep(0.0001)
        for _ in range(8):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        """,
        "-q",
    )
    assert (status, err) == (0, "")
    trace = cl.load(tmp_path / "program.clt")
    assert trace.complete
    assert not trace.problems


FORKS = """
import os, sys, threading, time
lock, done = threading.Lock(), False
def work():
    while not done:
        with lock:
            pass
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
sys.setswitchinterval(1e-4)
for number in range(1000):
    child = os.fork()
    if child == 0:
        mine = threading.Lock()
        with mine:
            os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("a child failed")
done = True
for thread in threads: thread.join()
print(len(threads))
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--subprocesses",)])
def test_a_thousand_forks_while_recording_heavily_neither_hang_nor_mix_traces(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    status, out, err = record(tmp_path, FORKS, "-q", "--level", "trace", *options)

    assert (status, out) == (0, "3\n"), err
    assert cl.load(tmp_path / "program.clt").complete
    children = [cl.load(path) for path in tmp_path.glob("program.*.clt")]
    assert len(children) == (1000 if options else 0)
    for trace in children:
        assert trace.complete
        assert not trace.problems
        assert len(trace.threads) == 1
