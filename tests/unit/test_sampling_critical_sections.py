"""Which lines take which lock, and which run while it is held."""

from __future__ import annotations

from textwrap import dedent

import pytest

from contention_lab.sampling.critical_sections import FileLocks, LockName, file_locks

SOURCE = dedent(
    '''
    import threading
    GUARD = threading.Lock()                       # 3

    class Pool:
        def __init__(self):
            self._lock = threading.RLock()         # 7
            self._ready = threading.Condition(self._lock)
            self._each = [threading.Lock()]

        def take(self):
            with self._lock:                       # 12
                first()                            # 13
                def later():
                    second()                       # 15
                return later                       # 16

        def wait(self):
            with self._ready:                      # 19
                self._ready.wait()                 # 20

        def one(self, key):
            with self._each[key]:                  # 23
                third()                            # 24

        def by_hand(self):
            self._lock.acquire()                   # 27
            fourth()                               # 28
            self._lock.release()                   # 29
            fifth()                                # 30

    def chosen(fast):
        GUARD.acquire() if fast else spin(GUARD)   # 33
        try:
            sixth()                                # 35
        finally:
            GUARD.release()

    def local(lock):
        with lock, open("x"):                      # 40
            seventh()                              # 41
        with made(lock):                           # 42
            eighth()                               # 43
    '''
)  # fmt: skip


@pytest.fixture(scope="module")
def locks() -> FileLocks:
    return file_locks(SOURCE)


POOL, GUARD = LockName("Pool", "_lock"), LockName("", "GUARD")


@pytest.mark.parametrize(
    ("line", "lock"),
    [
        (12, POOL),
        (13, None),
        (19, POOL),  # a condition of that lock
        (23, LockName("Pool", "_each", fixed=False)),
        (27, POOL),
        (33, GUARD),
        (40, LockName("local", "lock")),
        (42, None),
    ],
)
def test_a_line_takes_a_lock(locks: FileLocks, line: int, lock: LockName | None) -> None:
    assert locks.taken_at(line) == lock


@pytest.mark.parametrize(
    ("line", "held"),
    [
        (12, ()),
        (13, (POOL,)),
        (15, ()),  # runs later
        (16, (POOL,)),
        (20, (POOL,)),
        (24, (LockName("Pool", "_each", fixed=False),)),
        (27, ()),
        (28, (POOL,)),
        (30, ()),
        (35, (GUARD,)),
        (41, (LockName("local", "lock"),)),
        (43, ()),
    ],
)
def test_a_lock_is_held_at_a_line(locks: FileLocks, line: int, held: tuple[LockName, ...]) -> None:
    assert locks.held_at(line) == held


def test_a_lock_is_named_by_where_it_is_made(locks: FileLocks) -> None:
    assert {lock.label: made[0].line for lock, made in locks.made.items()} == {
        "GUARD": 3,
        "Pool._lock": 7,
        "Pool._ready": 8,
    }


def test_what_is_asked_for_is_known(locks: FileLocks) -> None:
    assert locks.asked_at(20) == POOL


def test_locks_made_together_are_told_apart_and_are_of_the_module() -> None:
    found = file_locks(
        "import threading\n"
        "a, b = threading.Lock(), threading.RLock()\n"
        "def work():\n"
        "    with a:\n"
        "        with b:\n"
        "            pass\n"
    )

    first, second = found.taken_at(4), found.taken_at(5)
    assert first is not None
    assert second is not None
    assert (first.label, second.label) == ("a", "b")
    assert [found.made[one][0].call for one in (first, second)] == [
        "threading.Lock",
        "threading.RLock",
    ]
