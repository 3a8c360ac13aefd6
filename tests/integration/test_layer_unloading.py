"""`record ./program`: a library is unloaded that has locks, and destructors that take them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from layer_programs import (
    compiled,
    functions,
    load_program,
    needs_compiler,
    needs_layer,
    record_program,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

LIBRARY = """
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t mutex;
static int turns;
__attribute__((constructor)) static void begin(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
__attribute__((noinline)) void turn(void)
{
    struct timespec nap = {0, 1000000};
    pthread_mutex_lock(&mutex);
    turns++;
    nanosleep(&nap, NULL);
    pthread_mutex_unlock(&mutex);
}
__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&mutex);
    printf("%d\\n", turns);
    fflush(stdout);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
}
"""
PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static void (*turn)(void);
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) { turn(); }
    return unused;
}
int main(void)
{
    pthread_t thread[3];
    for (int times = 0; times < 3; times++) {
        void *library = dlopen(LIBRARY, RTLD_NOW);
        *(void **)&turn = dlsym(library, "turn");
        for (int i = 0; i < 3; i++) { pthread_create(&thread[i], NULL, work, NULL); }
        for (int i = 0; i < 3; i++) { pthread_join(thread[i], NULL); }
        CLOSE
    }
    return 0;
}
"""


@pytest.mark.parametrize("closes", [True, False])
def test_a_library_may_go_with_its_locks_and_its_destructors_lock(
    closes: bool, tmp_path: Path
) -> None:
    library = compiled(tmp_path, LIBRARY, "libturns")
    close = "if (dlclose(library) != 0) { return 1; }" if closes else ""
    source = PROGRAM.replace("LIBRARY", f'"{library}"').replace("CLOSE", close)

    done = record_program(tmp_path, source, "-ldl")
    alone = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done == (0, alone.stdout, "")
    assert alone.stdout == ("60\n" * 3 if closes else "180\n")
    trace = load_program(tmp_path)
    # Of three threads two wait each time, once at least: the lock may go to one again and again.
    mutex = [trace.lock(int(wait["lock"])).type == "pthread_mutex" for wait in trace.waits]
    assert sum(mutex) >= 3 * 2
    assert any("turn" in functions(trace, wait["stack"]) for wait in trace.waits)
