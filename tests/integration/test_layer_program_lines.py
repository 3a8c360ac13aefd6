"""`record ./program`: source lines, builds, and processes that are not in the trace."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from layer_programs import (
    load_program,
    needs_compiler,
    needs_layer,
    record_program,
    run_recorded,
)

from contention_lab.trace import Trace, native_lines, not_seen

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_layer, needs_compiler]

SERVER = """\
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t server = PTHREAD_MUTEX_INITIALIZER;
static void *backward(void *nothing)
{
    struct timespec t = {0, 2000000};
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&server);
        nanosleep(&t, NULL);
        pthread_mutex_unlock(&server);
    }
    return nothing;
}
int main(int count, char **arguments)
{
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) { pthread_create(&thread[i], NULL, backward, NULL); }
    for (int i = 0; i < 3; i++) { pthread_join(thread[i], NULL); }
    for (int i = 0; i < FORKS; i++) { if (fork() == 0) { _exit(0); } wait(NULL); }
    return 0;
}
"""
TAKES, LETS_GO = 10, 12


def lines_of(trace: Trace, function: str) -> set[tuple[str, int]]:
    frames = [frame for frame in trace.frames.values() if frame.function == function]
    return {(frame.filename.rpartition("/")[2], frame.line) for frame in frames}


def record(folder: Path, *options: str, forks: int = 0) -> Trace:
    status, _, err = record_program(folder, SERVER, f"-DFORKS={forks}", *options)
    assert (status, err) == (0, "")
    return load_program(folder)


@pytest.mark.parametrize("tool", native_lines.TOOLS)
@pytest.mark.parametrize("linked", ["-pie", "-no-pie"])
def test_a_program_with_debug_information_has_the_lines_of_its_calls(
    tool: str, linked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    monkeypatch.setattr(native_lines, "TOOLS", {tool: native_lines.TOOLS[tool]})

    trace = record(tmp_path, "-g", linked)

    found = lines_of(trace, "backward")
    assert found >= {("program.c", TAKES)}
    assert found <= {("program.c", TAKES), ("program.c", LETS_GO)}
    mutexes = [lock for lock in trace.locks.values() if lock.type == "pthread_mutex"]
    assert [lock.label for lock in mutexes] == [f"program:backward:{TAKES}"]
    assert not_seen(trace) == ()


def test_a_program_without_says_so(tmp_path: Path) -> None:
    trace = record(tmp_path)

    assert lines_of(trace, "backward") == {("program", 0)}
    assert not_seen(trace) == ("lines of its code: program was built without them (-g)",)


def test_lines_of_another_build_are_none(tmp_path: Path) -> None:
    record(tmp_path, "-g")
    (tmp_path / "program.c").write_text("\n\n" + SERVER)
    command = ["cc", "-g", "-DFORKS=1", "-pthread", "program.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)

    trace = load_program(tmp_path)

    assert lines_of(trace, "backward") == {("program", 0)}
    assert not_seen(trace) == ("lines of its code: program has been built anew since",)


def test_the_build_of_every_file_is_kept(tmp_path: Path) -> None:
    build = "0123456789abcdef0123456789abcdef01234567"

    trace = record(tmp_path, f"-Wl,--build-id=0x{build}")

    assert trace.native.build_ids[str(tmp_path / "program")] == build


def test_of_libraries_of_a_python_too(tmp_path: Path) -> None:
    pytest.importorskip("sqlite3")
    program = """
    import sqlite3, threading
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.execute("create table t (a)")
    db.executemany("insert into t values (?)", [(i,) for i in range(20000)])
    def query():
        for _ in range(5):
            db.execute("select count(*) from t where a in (select a from t)").fetchall()
    threads = [threading.Thread(target=query) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    """
    native = run_recorded(tmp_path, program).trace.native

    assert native.build_ids.keys() >= {frame.image for frame in native.frames.values()}
    assert any("sqlite" in path and build for path, build in native.build_ids.items())


@pytest.mark.parametrize(
    ("forks", "note"),
    [
        (1, "forked child process: of a program"),
        (3, "3 times forked child process: of a program"),
    ],
)
def test_forked_children_are_counted_as_not_recorded(forks: int, note: str, tmp_path: Path) -> None:
    [sentence] = not_seen(record(tmp_path, "-g", forks=forks))

    assert sentence.startswith(note)
