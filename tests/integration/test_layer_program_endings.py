"""`record ./program`: a program ends when and as it would, however it ends or makes children."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from layer_programs import load_program, needs_compiler, needs_layer, record_program

import contention_lab as cl
from contention_lab.trace import not_seen

pytestmark = [needs_layer, needs_compiler]

TWO_THREADS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
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


WROTE = "contention-lab: wrote program.clt; next: contention-lab diagnose program.clt\n"
ONE_CHILD = "contention-lab: 1 forked child was not recorded\n"
ON_SIGNAL = "signal(SIGALRM, leave); raise(SIGALRM);"
JOIN = "for (int i = 0; i < 2; i++) { pthread_join(thread[i], NULL); }"


def ended(folder: Path, source: str) -> tuple[int, str]:
    """Record a program that is not told to be quiet; return its status and its errors."""
    leave = "static void leave(int number) { _exit(number); }\nint main(void)"
    (folder / "program.c").write_text(source.replace("int main(void)", leave))
    command = ["cc", "-O2", "-pthread", "program.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "--", "./program"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("leave", ["_exit(5);", "_Exit(5);", "quick_exit(5);", ON_SIGNAL])
@pytest.mark.parametrize("threads", [False, True])
def test_a_program_that_ends_at_once_leaves_a_whole_trace_and_its_name(
    leave: str, threads: bool, tmp_path: Path
) -> None:
    source = program(after=JOIN + leave) if threads else program(before=leave)

    status, err = ended(tmp_path, source)

    assert (status, err) == (14 if leave == ON_SIGNAL else 5, WROTE)
    assert bool(len(load_program(tmp_path).waits)) == threads


def test_a_signal_among_allocations_ends_a_program_as_it_would(tmp_path: Path) -> None:
    allocate = "for (;;) { free(malloc(100000)); free(malloc(200)); }"
    alarm = "signal(SIGALRM, leave); ualarm(20000, 0);"

    for threads in (False, True):
        where = {"after": JOIN + alarm + allocate} if threads else {"before": alarm + allocate}
        assert ended(tmp_path, program(**where)) == (14, WROTE)


@pytest.mark.parametrize(
    "leave", ["if (daemon(1, 1)) { return 1; }", "if (fork()) { _exit(0); } setsid();"]
)
def test_a_program_that_goes_on_in_the_background_leaves_the_name_of_its_trace(
    leave: str, tmp_path: Path
) -> None:
    goes_on = f'{leave} creat("alive", 0600); close(0); close(1); close(2); return 0;'
    source = "#include <fcntl.h>\n" + program(before=goes_on)

    assert ended(tmp_path, source) == (0, ONE_CHILD + WROTE)

    assert load_program(tmp_path).complete
    deadline = time.monotonic() + 20
    while not (tmp_path / "alive").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / "alive").exists()


@pytest.mark.parametrize("fork", ["fork", "vfork"])
def test_a_child_that_ends_at_once_does_not_end_the_recording(fork: str, tmp_path: Path) -> None:
    child = f"if ({fork}() == 0) {{ _exit(4); }} wait(&status);"

    status, err = ended(tmp_path, program(after=child))

    assert (status, err) == (4, (ONE_CHILD if fork == "fork" else "") + WROTE)
    assert sum(int(hold["waiters"]) > 0 for hold in load_program(tmp_path).holds) > 5


ON = '(char *[]){"echo", "on", NULL}'
FCNTL = "#define _GNU_SOURCE\n#include <fcntl.h>\n"
REPLACED = "contention-lab: the program that takes its place (exec) is not recorded\n"


@pytest.mark.parametrize(
    "call",
    [
        'execl("/bin/echo", "echo", "on", NULL);',
        'execlp("echo", "echo", "on", NULL);',
        'execle("/bin/echo", "echo", "on", NULL, environ);',
        f'execv("/bin/echo", {ON});',
        f'execve("/bin/echo", {ON}, environ);',
        f'execvp("echo", {ON});',
        f'execvpe("echo", {ON}, environ);',
        f'fexecve(open("/bin/echo", O_RDONLY), {ON}, environ);',
    ],
)
def test_another_program_that_takes_its_place_leaves_the_trace_whole(
    call: str, tmp_path: Path
) -> None:
    for threads in (True, False):
        where = {"after": JOIN + call} if threads else {"before": call}

        assert ended(tmp_path, FCNTL + program(**where)) == (0, REPLACED + WROTE)

        trace = load_program(tmp_path)
        assert trace.complete
        assert bool(len(trace.waits)) == threads
        assert any(
            one.startswith("program that took its place (exec): only") for one in not_seen(trace)
        )


@pytest.mark.parametrize(
    "call",
    [
        'execl("/nowhere/echo", "echo", NULL);',
        'execlp("no-such-program-is-there", "x", NULL);',
        'execl("/", "x", NULL);',
        'if (vfork() == 0) { execlp("true", "true", NULL); _exit(1); }',
    ],
)
def test_what_takes_no_place_of_a_program_ends_no_recording(call: str, tmp_path: Path) -> None:
    status, err = ended(tmp_path, program(before=call))

    assert (status, err.replace(ONE_CHILD, "")) == (0, WROTE)
    assert len(load_program(tmp_path).waits) > 0
