"""Programs that ask much of the layer: many threads, early locks, and a checked build."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from layer_programs import compiled, load_program, needs_compiler, needs_layer, record_program
from layer_torture import PROGRAM, RESULT, THREADS, TURNS

import contention_lab as cl

if TYPE_CHECKING:
    from contention_lab.trace import Trace

pytestmark = [needs_layer, needs_compiler]


def acquires(trace: Trace, kind: str) -> int:
    return sum(
        int(counter["acquires"])
        for counter in trace.counters
        if trace.lock(int(counter["lock"])).type == kind
    )


def test_sixty_four_threads_get_what_they_would_and_all_is_counted(tmp_path: Path) -> None:
    status, out, err = record_program(tmp_path, PROGRAM)

    trace = load_program(tmp_path)
    assert (status, out, err) == (0, RESULT, "")
    assert trace.status is not None
    each = THREADS * TURNS
    if not trace.status["dropped_waits"]:
        assert acquires(trace, "pthread_rwlock") == acquires(trace, "pthread_spinlock") == each
        # The threads' last turn at the mutex is one more; the main thread's, and after each wait
        # for the condition the C library's own, is none that passes by us.
        assert 2 * each + THREADS <= acquires(trace, "pthread_mutex") <= 2 * each + THREADS + 1
    assert len(trace.waits) > THREADS


def test_locks_that_are_taken_before_the_layer_is_ready(tmp_path: Path) -> None:
    early = compiled(
        tmp_path,
        """
        #include <pthread.h>
        #include <semaphore.h>
        #include <stdio.h>
        #include <unistd.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
        static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
        static int count;
        static void *other(void *nothing)
        {
            pthread_mutex_lock(&mutex);
            count++;
            pthread_cond_broadcast(&cond);
            pthread_mutex_unlock(&mutex);
            return nothing;
        }
        __attribute__((constructor)) static void begin(void)
        {
            pthread_t thread;
            sem_t semaphore;
            sem_init(&semaphore, 0, 1);
            count += sem_wait(&semaphore) == 0 && sem_post(&semaphore) == 0;
            count += pthread_rwlock_wrlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0;
            pthread_mutex_lock(&mutex);
            pthread_create(&thread, NULL, other, NULL);
            while (count < 3) { pthread_cond_wait(&cond, &mutex); }
            pthread_mutex_unlock(&mutex);
            count += pthread_join(thread, NULL) == 0;
        }
        int early(void) { return count; }
        """,
        "libearly",
    )
    program = """
    #include <stdio.h>
    int early(void);
    int main(void) { printf("%d\\n", early()); return 0; }
    """

    found = record_program(tmp_path, program, "-Wl,--no-as-needed", early, f"-Wl,-rpath,{tmp_path}")

    assert found == (0, "4\n", "")
    load_program(tmp_path)


PYTHON_PROGRAM = """
import ctypes, queue, threading, time
lock, items = threading.Lock(), queue.SimpleQueue()
libc = ctypes.CDLL(None)
def work():
    for i in range(50):
        with lock:
            time.sleep(0.00001)
        items.put(i)
        items.get()
        libc.sched_yield()
        sum(range(200))
threads = [threading.Thread(target=work) for _ in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("all well")
"""


def sanitized(folder: Path) -> Path:
    """Build the layer and the core with checks of undefined behaviour; return where to import."""
    place = folder / "place" / "contention_lab"
    native = Path(cl.__path__[0]) / "native"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (place / "native").mkdir(parents=True)
    for source in (native.parent, native):
        for path in source.iterdir():
            if path.name != "native" and path.suffix != ".so":
                (place / path.relative_to(native.parent)).symlink_to(path)
    options = ["-std=c11", "-O1", "-fPIC", "-shared", "-pthread", "-fno-strict-aliasing"]
    checks = ["-fvisibility=hidden", "-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
    include = f"-I{sysconfig.get_path('include')}"
    for name, source in (("_core", "module.c"), ("_layer", "layer/layer.c")):
        target = place / "native" / f"{name}{suffix}"
        command = ["cc", *options, *checks, include, str(native / source), "-o", str(target)]
        done = subprocess.run([*command, "-ldl"], capture_output=True, text=True, check=False)
        if done.returncode != 0 and ("Python.h" in done.stderr or "ubsan" in done.stderr):
            pytest.skip("no headers of Python, or no sanitizer")
        assert done.returncode == 0, done.stderr
    return place.parent


@pytest.mark.slow
def test_nothing_in_c_is_undefined(tmp_path: Path) -> None:
    place = sanitized(tmp_path)
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "program.py").write_text(PYTHON_PROGRAM)
    subprocess.run(["cc", "-O2", "-pthread", "program.c", "-o", "run"], cwd=tmp_path, check=True)

    for program, out in (("./run", RESULT), ("program.py", "all well\n")):
        command = [sys.executable, "-m", "contention_lab", "record", "-q", "-o", "x.clt"]
        done = subprocess.run(
            [*command, *(["--"] if program == "./run" else []), program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(place)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, out, "")
        assert cl.load(tmp_path / "x.clt").complete
