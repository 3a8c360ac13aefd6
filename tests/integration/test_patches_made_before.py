"""What was made before a recording, or in another process, has no site where it is used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from test_record_faults import record

import contention_lab as cl
from contention_lab.analysis import lock_table

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Frame


def test_a_semaphore_made_before_has_no_site_and_one_made_in_it_has(tmp_path: Path) -> None:
    def use(semaphore: threading.Semaphore) -> None:
        with semaphore:
            pass

    before = threading.Semaphore(1)
    with cl.record(tmp_path / "run.clt"):
        use(before)
        use(threading.Semaphore(1))
    trace = cl.load(tmp_path / "run.clt")
    sites = [lock.site for lock in trace.locks.values() if lock.type == "threading.Semaphore"]
    assert len(sites) == 2
    assert sites.count(None) == 1
    (made,) = [site for site in sites if site is not None]
    assert made.function.endswith("test_a_semaphore_made_before_has_no_site_and_one_made_in_it_has")


def test_a_threads_start_is_no_wait_of_the_thread_that_imports_threading(tmp_path: Path) -> None:
    code, _out, err = record(
        tmp_path, "import threading\nwith threading.Lock(): pass", "-o", "run.clt"
    )
    assert code == 0, err
    (start,) = [
        row for row in lock_table(cl.load(tmp_path / "run.clt")) if "_MainThread" in row.lock.type
    ]
    assert start.failed_tries == 1
    assert start.wait_s == start.contended == 0


@pytest.mark.parametrize("use", ["with lock: pass", "pass"])
def test_a_lock_sent_to_a_spawned_process_has_its_site_only_where_it_was_made(
    use: str, tmp_path: Path
) -> None:
    code, _out, err = record(
        tmp_path,
        f"""
        import multiprocessing

        def work(lock):
            with lock: pass

        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            lock = context.Lock()
            {use}
            process = context.Process(target=work, args=(lock,))
            process.start()
            process.join()
        """,
        "--subprocesses",
        "-o",
        "run.clt",
    )
    assert code == 0, err
    sites: dict[str, list[Frame | None]] = {}
    for path in tmp_path.glob("run*.clt"):
        for lock in cl.load(path).locks.values():
            if lock.type == "multiprocessing.Lock" and lock.name:
                sites.setdefault(lock.name, []).append(lock.site)
    (both,) = [found for found in sites.values() if len(found) == 2]
    (made,) = [site for site in both if site is not None]
    assert made.filename.endswith("program.py")


def test_asking_who_owns_a_condition_is_no_try_of_its_lock(tmp_path: Path) -> None:
    class Held:
        def __init__(self) -> None:
            self.condition = threading.Condition(threading.Lock())

    held = Held()
    with cl.record(tmp_path / "run.clt", existing=True):
        for _ in range(10):
            with held.condition:
                held.condition.notify()
    rows = [row for row in lock_table(cl.load(tmp_path / "run.clt")) if row.acquires == 10]
    assert rows
    assert all(row.failed_tries == row.contended == 0 for row in rows)
