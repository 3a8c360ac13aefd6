"""The program's environment and processes are with the layer what they are without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from layer_programs import (
    LAYER,
    Run,
    compiled,
    needs_compiler,
    needs_layer,
    run_recorded,
)

import contention_lab as cl
from contention_lab.capture.metadata import gil_enabled

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = needs_layer
needs_gil = pytest.mark.skipif(not gil_enabled(), reason="there is no GIL")

ENVIRONMENT = """
import ctypes, os, subprocess, sys
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(os.environ.get("LD_PRELOAD"), getenv(b"LD_PRELOAD"))
print(sorted(name for name in os.environ if "CONTENTION" in name))
print([pair for pair in open("/proc/self/environ").read().split("\\0") if "LD_PRELOAD" in pair])
out = subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout
print([line for line in out.splitlines() if "LD_PRELOAD" in line or "CONTENTION" in line])
print(sum("_layer" in line for line in open("/proc/self/maps")) > 0)
"""
MARK = """
#include <unistd.h>
int marked = 1;
__attribute__((constructor)) static void mark(void) { (void)!write(2, "NAME\\n", 5); }
"""


def run(
    folder: Path,
    program: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Run:
    done = run_recorded(folder, program, *arguments, options=options, environment=environment)
    assert done.status == 0, done.err
    return done


def test_the_program_does_not_find_the_layer_in_its_environment(tmp_path: Path) -> None:
    out = run(tmp_path, ENVIRONMENT).out

    assert out.splitlines() == ["None None", "[]", "[]", "[]", "True"]


def test_without_the_layer_nothing_is_loaded(tmp_path: Path) -> None:
    out = run(tmp_path, ENVIRONMENT, options=("--no-native-layer",)).out

    assert out.splitlines() == ["None None", "[]", "[]", "[]", "False"]


@needs_compiler
@pytest.mark.parametrize("form", ["{a}", "{a}:{b}", "{a} {b}", "{a}:", ""])
def test_the_programs_own_preloads_are_kept_in_order(tmp_path: Path, form: str) -> None:
    paths = {name: compiled(tmp_path, MARK.replace("NAME", name * 4), name) for name in "ab"}
    value = form.format(**paths)

    done = run(tmp_path, ENVIRONMENT, environment={"LD_PRELOAD": value})

    seen = done.out.splitlines()
    assert seen[0] == f"{value} {value.encode()!r}"
    assert seen[2] == str([f"LD_PRELOAD={value}"])
    assert seen[3] == str([f"LD_PRELOAD={value}"])
    assert seen[4] == "True"
    plain = subprocess.run(
        [sys.executable, "-c", ""],
        env={**os.environ, "LD_PRELOAD": value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.err.startswith(plain.stderr), "loaded before and after ours, in the same order"


@needs_compiler
def test_a_preload_that_stands_before_the_same_calls_still_sees_them(tmp_path: Path) -> None:
    counting = compiled(
        tmp_path,
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <time.h>
        static int count;
        int clock_nanosleep(clockid_t c, int f, const struct timespec *t, struct timespec *r)
        {
            int (*next)(clockid_t, int, const struct timespec *, struct timespec *) =
                dlsym(RTLD_NEXT, "clock_nanosleep");
            count++;
            return next(c, f, t, r);
        }
        __attribute__((destructor)) static void say(void) { fprintf(stderr, "slept %d\\n", count); }
        """,
        "counting",
    )
    program = """
    import threading, time
    lock = threading.Lock()
    for _ in range(3):
        with lock:
            time.sleep(0.002)
    """
    done = run(tmp_path, program, environment={"LD_PRELOAD": counting})

    if "slept 0" in done.err:
        pytest.skip("this Python sleeps in another way")
    assert "slept 3" in done.err
    assert len(done.trace.blocking) == 3


def test_a_child_is_recorded_with_the_layer_only_with_subprocesses(tmp_path: Path) -> None:
    program = """
    import os, subprocess, sys
    code = '''if True:
        import os, threading, time
        print(os.environ.get("LD_PRELOAD"))
        lock = threading.Lock()
        with lock:
            time.sleep(0.002)
    '''
    subprocess.run([sys.executable, "-c", code], check=True)
    shell = {**os.environ, "PYTHON": sys.executable, "CODE": code}
    subprocess.run('"$PYTHON" -c "$CODE"', shell=True, check=True, env=shell)
    """
    alone = run(tmp_path, program)
    assert alone.out.split() == ["None", "None"]
    assert len(list(tmp_path.glob("*.clt"))) == 1

    family = run(tmp_path, program, options=("--subprocesses",))

    assert family.out.split() == ["None", "None"]
    children = [cl.load(path) for path in tmp_path.glob("run.*.clt")]
    assert len(children) == 2
    for child in children:
        assert child.meta["native_layer"] is True
        assert len(child.blocking) == 1


FORKS = """
import os, signal, subprocess, sys, threading, time

stop = False
lock = threading.Lock()

def busy():
    while not stop:
        with lock:
            time.sleep(0.0005)
        sum(range(2000))

workers = [threading.Thread(target=busy) for _ in range(4)]
for worker in workers:
    worker.start()
"""
LEAVE = """
stop = True
for worker in workers:
    worker.join()
print("all well")
"""


@pytest.mark.filterwarnings("ignore")
def test_forks_among_busy_threads(tmp_path: Path) -> None:
    program = """
for number in range(20):
    pid = os.fork()
    if pid == 0:
        threads = [threading.Thread(target=sum, args=(range(10000),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(number)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == number
"""
    done = run(tmp_path, FORKS + program + LEAVE, options=("--level", "trace"))

    assert done.out == "all well\n"
    assert (len(done.trace.gil_totals) >= 5) == gil_enabled()


@needs_gil
def test_a_forked_child_that_is_recorded_sees_its_own_gil(tmp_path: Path) -> None:
    program = """
import os, threading
def work():
    threads = [threading.Thread(target=lambda: [i * i for i in range(300_000)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
work()
pid = os.fork()
work()
if pid:
    os.waitpid(pid, 0)
"""
    run(tmp_path, program, options=("--subprocesses",))

    [child] = [cl.load(path) for path in tmp_path.glob("run.*.clt")]
    assert not child.problems
    assert child.meta["gil_source"] == "events"
    assert 3 <= len(child.gil_totals) <= 5
    held = int(child.gil_totals["held_ns"].sum())
    assert child.duration_ns / 4 < held <= child.duration_ns


def test_children_started_in_every_way_among_busy_threads(tmp_path: Path) -> None:
    program = """
for number in range(8):
    subprocess.run(["true"], check=True)                     # vfork, where there is one
    subprocess.run(["true"], check=True, close_fds=False)    # posix_spawn
    pid = os.posix_spawn("/bin/true", ["true"], os.environ)
    os.waitpid(pid, 0)
    assert os.system("exit 3") == 3 << 8
    with lock:
        subprocess.run(["sleep", "0.001"], check=True, preexec_fn=lambda: None)
"""
    assert run(tmp_path, FORKS + program + LEAVE).out == "all well\n"


def test_a_program_that_becomes_another_one(tmp_path: Path) -> None:
    program = """
    import os, sys, threading
    print(sys.argv[1:], flush=True)
    if len(sys.argv) == 1:
        os.execv(sys.executable, [sys.executable, __file__, "again"])
    print(os.environ.get("LD_PRELOAD"))
    """
    assert run(tmp_path, program).out.splitlines() == ["[]", "['again']", "None"]


def test_signals_during_waits_and_calls(tmp_path: Path) -> None:
    program = """
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(time.perf_counter()))
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
end = time.perf_counter() + 0.5
while time.perf_counter() < end:
    with lock:
        time.sleep(0.001)
    sum(range(20000))
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(seen) > 20
"""
    done = run(tmp_path, FORKS + program + LEAVE)

    assert done.out == "all well\n"
    assert len(done.trace.blocking) > 20


def test_an_interrupted_program_leaves_a_whole_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import threading, time\nlock = threading.Lock()\nprint(flush=True)\n"
        "with lock:\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "contention_lab", "record", "-q", "-o", "run.clt"]
    process = subprocess.Popen(
        [*command, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in err
    trace = cl.load(tmp_path / "run.clt")
    assert trace.complete
    assert len(trace.blocking) == 1


def test_where_the_layer_cannot_be_used_one_line_says_what_is_lost(tmp_path: Path) -> None:
    place = tmp_path / "with a space"
    place.mkdir()
    (place / "contention_lab").symlink_to(Path(cl.__path__[0]))
    (tmp_path / "program.py").write_text("print('ran')")
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-o", "run.clt", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "ran\n"
    first, *_ = done.stderr.splitlines()
    assert first.startswith("contention-lab: without the native layer (")
    assert "only sampled" in first
    assert Path(LAYER).name in first


OLDER_LAYER = """
#include <stdlib.h>
int contention_lab_layer_attach(const void *table);
int contention_lab_layer_attach(const void *table)
{
    if (table != NULL) { abort(); }
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("word", ["", "const unsigned contention_lab_layer_abi = 1u << 16 | 4u;"])
def test_a_layer_of_another_build_is_left_alone_and_one_line_says_so(
    tmp_path: Path, word: str
) -> None:
    older = compiled(tmp_path, OLDER_LAYER + word, "older")
    place = tmp_path / "place" / "contention_lab"
    (place / "native").mkdir(parents=True)
    for folder in (Path(), Path("native")):
        for path in (Path(cl.__path__[0]) / folder).iterdir():
            if path.name not in ("native", Path(LAYER).name):
                (place / folder / path.name).symlink_to(path)
    (place / "native" / Path(LAYER).name).symlink_to(older)
    program = "import threading\nwith threading.Lock():\n    print('ran')"

    done = run(tmp_path, program, environment={"PYTHONPATH": str(place.parent)})
    (tmp_path / "program.py").write_text(program)
    loud = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-o", "run.clt", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place.parent)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert (done.out, done.err) == ("ran\n", "")
    source = "samples" if gil_enabled() else "none"
    assert (done.trace.meta["native_layer"], done.trace.meta["gil_source"]) == (False, source)
    first, *others = loud.stderr.splitlines()
    assert first.startswith("contention-lab: without the native layer (it is of another build")
    assert len(others) == 1
