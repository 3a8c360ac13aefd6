"""Waits in native code on a free-threaded Python: threads read their own stacks, at the wait.

They need such a Python to run.
"""

from __future__ import annotations

import sysconfig
from typing import TYPE_CHECKING

import pytest
from layer_programs import compiled, functions, length_ns, needs_compiler, needs_layer, run_recorded

from contention_lab.analysis.native_locks import native_locks
from contention_lab.trace.layer_schema import NativeWaitFlag

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    needs_layer,
    pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="it has a GIL"),
]

APPEND = """
import threading
shared = []
def append_all():
    for number in range(400_000):
        shared.append(number)
threads = [threading.Thread(target=append_all) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(shared))
"""
STORE = """
#include <pthread.h>
#include <time.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void store(void)
{
    struct timespec t = {0, 2000000};
    pthread_mutex_lock(&mutex);
    nanosleep(&t, NULL);
    pthread_mutex_unlock(&mutex);
}
"""
CALL = """
import ctypes, sys, threading
store = ctypes.{loader}(sys.argv[1]).store
all_four = threading.Barrier(4)
def sell():
    all_four.wait()
    for _ in range(10):
        store()
threads = [threading.Thread(target=sell) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
TORTURE = """
import gc, threading
shared, numbers, over = [], {}, threading.Event()
def collect():
    while not over.is_set():
        gc.collect()
def make(number):
    space = {"shared": shared, "numbers": numbers}
    # Functions that nobody has seen before, and that are gone soon.
    lines = [*[" pass"] * (number % 7), " shared.append(1)", " numbers[1] = 2"]
    exec("\\n".join([f"def step_{number}():", *lines]), space)
    return space[f"step_{number}"]
def work(first):
    for number in range(first, first + 300):
        step = make(number)
        for _ in range(40):
            step()
collector = threading.Thread(target=collect)
collector.start()
threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
over.set()
collector.join()
print(len(shared), numbers)
"""


def test_the_lists_own_lock_is_waited_for_where_python_appends(tmp_path: Path) -> None:
    run = run_recorded(tmp_path, APPEND)

    assert (run.status, run.out) == (0, "1600000\n")
    [row] = [
        row
        for row in native_locks(run.trace)
        if row.identity.text == "the list's own lock"
        and row.site is not None
        and row.site.function == "append_all"
    ]
    assert row.waits > 0
    assert row.victims[0].site is not None
    assert row.victims[0].site.function == "append_all"


@needs_compiler
@pytest.mark.parametrize("loader", ["CDLL", "PyDLL"])
def test_waits_and_releases_in_a_library_have_pythons_stack(loader: str, tmp_path: Path) -> None:
    path = compiled(tmp_path, STORE, "libstore")

    trace = run_recorded(tmp_path, CALL.format(loader=loader), path).trace

    events = [
        one
        for one in trace.native_waits
        if "store" in [frame.symbol for frame in trace.native_stack(int(one["native_stack"]))]
    ]
    releases = [one for one in events if int(one["flags"]) & int(NativeWaitFlag.RELEASE)]
    assert len(releases) >= 3  # one thread may take it ten times in a row
    assert len(events) - len(releases) >= 3
    assert all(functions(trace, one["stack"])[:1] == ["sell"] for one in events)
    assert all(int(one["thread"]) for one in events)
    assert sum(map(length_ns, events)) > 3 * 2_000_000


def test_collections_and_short_lived_functions_meanwhile_do_no_harm(tmp_path: Path) -> None:
    run = run_recorded(tmp_path, TORTURE, timeout_s=300)

    assert (run.status, run.out, run.err) == (0, f"{16 * 300 * 40} {{1: 2}}\n", "")
    names = {frame.function for frame in run.trace.frames.values()}
    assert any(name.startswith("step_") for name in names)
