"""A reader-writer lock: who may be inside together, whose turn it is, what giving up leaves."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.locks import RWLock

if TYPE_CHECKING:
    from collections.abc import Callable


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0)


def visit(side: Any, order: list[str], name: str) -> Callable[[], None]:
    def work() -> None:
        with side:
            order.append(name)

    return work


def until_a_writer_waits(lock: RWLock) -> None:
    """Return once newcomers may not read although only readers are inside."""

    def may_not_read() -> bool:
        if lock.read.acquire(blocking=False):
            lock.read.release()
            return False
        return True

    until(may_not_read)


def test_readers_are_inside_together_and_a_writer_is_not() -> None:
    lock = RWLock()
    with lock.read, lock.read:
        assert lock.locked()
        assert lock.read.locked()
        assert not lock.write.locked()
        assert not lock.write.acquire(blocking=False)
        assert not lock.acquire(timeout=0.001)
    assert not lock.locked()


def test_a_writer_is_alone() -> None:
    lock = RWLock("catalog")
    assert lock.name == lock.read.name == lock.write.name == "catalog"
    with lock.write:
        assert lock.locked()
        assert lock.write.locked()
        assert not lock.read.locked()
        assert not lock.read.acquire(blocking=False)
        assert not lock.write.acquire(blocking=False)


def test_a_side_keeps_the_lock_alive_and_says_which_it_is() -> None:
    read = RWLock("catalog").read
    assert "<unlocked contention_lab.locks.RWLock.read object 'catalog'" in repr(read)
    with read:
        assert "<locked contention_lab.locks.RWLock.read" in repr(read)


@pytest.mark.parametrize("side", ["read", "write"])
def test_a_side_that_nobody_has_cannot_be_released(side: str) -> None:
    lock = RWLock()
    other = lock.write if side == "read" else lock.read
    with other, pytest.raises(RuntimeError, match="release unlocked lock"):
        getattr(lock, side).release()


def test_new_readers_wait_while_a_writer_does_and_come_after_it() -> None:
    lock, order = RWLock(), list[str]()
    lock.read.acquire()
    writer = started(visit(lock.write, order, "writer"))
    until_a_writer_waits(lock)
    reader = started(visit(lock.read, order, "reader"))
    assert order == []
    lock.read.release()
    writer.join()
    reader.join()

    assert order == ["writer", "reader"]


def test_readers_and_one_writer_take_turns() -> None:
    lock, order = RWLock(), list[str]()
    inside = threading.Event()
    lock.write.acquire()
    second = started(visit(lock.write, order, "writer"))

    def read() -> None:
        with lock.read:
            order.append("reader")
            inside.wait()

    readers = [started(read) for _ in range(3)]
    until_parked([second, *readers])
    lock.write.release()
    until(lambda: len(order) == 3)  # all of them are inside, though the writer came first
    inside.set()
    for thread in (second, *readers):
        thread.join()

    assert order == ["reader", "reader", "reader", "writer"]


def test_writers_come_in_the_order_they_came() -> None:
    lock, order, writers = RWLock(), list[str](), list[threading.Thread]()
    lock.read.acquire()
    for name in "abcd":
        writers.append(started(visit(lock.write, order, name)))
        until_parked(writers[-1:])
    lock.read.release()
    for writer in writers:
        writer.join()

    assert order == list("abcd")


def test_readers_that_waited_for_a_writer_go_in_when_it_gives_up() -> None:
    lock, order = RWLock(), list[str]()
    lock.read.acquire()
    gone = threading.Event()

    def give_up() -> None:
        until_told.wait()
        assert not lock.write.acquire(timeout=0.3)
        gone.set()

    until_told = threading.Event()
    writer = started(give_up)
    until_told.set()
    until_a_writer_waits(lock)
    reader = started(visit(lock.read, order, "reader"))
    gone.wait()
    reader.join()  # though the first reader is still inside
    writer.join()

    assert order == ["reader"]
    lock.read.release()
    assert lock.write.acquire(blocking=False)


def test_a_child_after_a_fork_has_a_free_lock() -> None:
    lock = RWLock()
    lock.read.acquire()
    lock._at_fork_reinit()
    assert not lock.locked()
    assert lock.write.acquire(blocking=False)


def test_no_writer_meets_anybody_and_no_thread_starves() -> None:
    lock = RWLock()
    readers = writers = 0
    bad: list[str] = []
    served = [0] * 12

    def read(number: int) -> None:
        nonlocal readers
        for _ in range(100):
            with lock.read:
                readers += 1
                if writers:
                    bad.append("a reader met a writer")
                time.sleep(0)
                readers_were.append(lock.read.locked())
            served[number] += 1

    def write(number: int) -> None:
        nonlocal writers
        for _ in range(100):
            if lock.write.acquire(timeout=30):
                writers += 1
                time.sleep(0)
                if writers != 1 or lock.read.locked():
                    bad.append("a writer was not alone")
                writers -= 1
                lock.write.release()
                served[number] += 1

    readers_were: list[bool] = []
    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    threads += [threading.Thread(target=write, args=(i,)) for i in range(8, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert bad == []
    assert served == [100] * 12
    assert all(readers_were)
    assert not lock.locked()


def test_threads_that_keep_giving_up_leave_a_free_lock() -> None:
    lock = RWLock()

    def work(side: Any) -> None:
        for _ in range(200):
            if side.acquire(timeout=0.0002):
                time.sleep(0)
                side.release()

    threads = [
        threading.Thread(target=work, args=(lock.read if i % 3 else lock.write,)) for i in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not lock.locked()
    assert lock.write.acquire(blocking=False)


def until_parked(threads: list[threading.Thread]) -> None:
    """Return once the kernel says that the threads are asleep in it."""

    def asleep(thread: threading.Thread) -> bool:
        path = f"/proc/self/task/{thread.native_id}/stat"
        with open(path, encoding="utf-8") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] == "S"

    for _ in range(3):
        until(lambda: all(asleep(thread) for thread in threads))
