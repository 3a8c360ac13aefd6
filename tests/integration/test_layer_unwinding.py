"""Native stacks of threads that come to the same place again and again, from different callers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from layer_programs import compiled, functions, needs_compiler, needs_layer, run_recorded

from contention_lab.capture.metadata import gil_enabled

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

LIBRARY = """
#include <pthread.h>
#include <time.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void take(void)
{
    pthread_mutex_lock(&mutex);
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
    pthread_mutex_unlock(&mutex);
}
__attribute__((noinline)) void left(void) { take(); __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void right(void) { take(); __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void below(int depth)
{
    if (depth > 0) { below(depth - 1); } else { right(); }
    __asm__ volatile("" ::: "memory");
}
"""
PROGRAM = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])

def go_left():
    library.left()

def go_right():
    library.right()

def go_below(depth):
    library.below(depth)

def work():
    for turn in range(40):
        go_left()
        go_right()
        go_below(turn % 3)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(not gil_enabled(), reason="the Python stack is not of the same moment")
def test_a_stack_is_that_of_this_wait_and_of_no_earlier_one(tmp_path: Path) -> None:
    library = compiled(tmp_path, LIBRARY, "libsides", "-O1", "-fno-omit-frame-pointer")
    done = run_recorded(tmp_path, PROGRAM, library)
    assert done.status == 0, done.err
    trace = done.trace

    met: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for wait in trace.native_waits:
        native = [
            frame.label.removeprefix("libsides.so: ")
            for frame in trace.native_stack(int(wait["native_stack"]))
            if frame.label.startswith("libsides.so: ")
        ]
        python = [name for name in functions(trace, wait["stack"]) if name.startswith("go_")]
        if native and python:
            met[python[0], tuple(native)] += 1

    below = ("take", "right", "below")
    expected = {
        ("go_left", ("take", "left")),
        ("go_right", ("take", "right")),
        *(("go_below", (*below, *below[2:] * more)) for more in range(3)),
    }
    assert set(met) == expected
    assert all(times >= 3 for times in met.values())
