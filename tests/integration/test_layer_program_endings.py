"""`record ./program`: a program ends when and as it would, however it ends or makes children."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from layer_programs import load_program, needs_compiler, needs_layer, record_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

TWO_THREADS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused)
{
    struct timespec nap = {0, 1000000};
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        nanosleep(&nap, NULL);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(void)
{
    pthread_t thread[2];
    int status = 0;
    BEFORE
    for (int i = 0; i < 2; i++) { pthread_create(&thread[i], NULL, work, NULL); }
    AFTER
    for (int i = 0; i < 2; i++) { pthread_join(thread[i], NULL); }
    return WEXITSTATUS(status);
}
"""


def program(*, before: str = "", after: str = "") -> str:
    return TWO_THREADS.replace("BEFORE", before).replace("AFTER", after)


def test_a_program_whose_first_thread_leaves_ends_with_its_last_one(tmp_path: Path) -> None:
    assert record_program(tmp_path, program(after="pthread_exit(NULL);"))[0] == 0

    assert len(load_program(tmp_path).waits) > 0


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_child_made_behind_the_c_library_ends_by_itself_and_leaves_the_trace_alone(
    tmp_path: Path, where: str
) -> None:
    fork = "pid_t child = syscall(SYS_clone, 17, 0, 0, 0, 0); if (child == 0) { CHILD exit(4); }"
    fork = fork + " waitpid(child, &status, 0);"
    # A child of a program of one thread may make threads of its own.
    thread = "pthread_create(&thread[0], NULL, work, NULL); pthread_join(thread[0], NULL);"
    fork = fork.replace("CHILD", thread if where == "before" else "")

    assert record_program(tmp_path, program(**{where: fork}))[0] == 4

    trace = load_program(tmp_path)
    assert len(trace.waits) > 0
    assert len({thread.native_id for thread in trace.threads.values()}) == len(trace.threads)
