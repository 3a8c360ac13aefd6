"""The locks do what `threading.Lock` does: values, exceptions, limits."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.locks import KINDS, McsLock, Mutex, RWLock, SpinLock, TicketLock

if TYPE_CHECKING:
    from collections.abc import Callable

VARIANTS: dict[str, Callable[[], Any]] = {
    "threading.Lock": threading.Lock,
    **KINDS,
    "spinlock-backoff": lambda: SpinLock(backoff=True),
    "spinlock-yield": lambda: SpinLock(yield_after=10),
    "spinlock-park": lambda: SpinLock(park_after=100),
    "ticket-yield": lambda: TicketLock(yield_after=10),
    "mcs-yield": lambda: McsLock(yield_after=10),
    "rwlock-write": lambda: RWLock().write,
}

# With more threads than cores each hand-over takes a slice of the scheduler.
SLOW = {"threading.Lock", "ticket", "mcs"}


@pytest.fixture(params=VARIANTS)
def lock(request: pytest.FixtureRequest) -> Any:
    return VARIANTS[request.param]()


def test_acquire_and_release_return_what_threading_lock_returns(lock: Any) -> None:
    assert lock.acquire() is True
    assert lock.locked() is True
    assert lock.acquire(blocking=False) is False
    assert lock.acquire(False) is False
    assert lock.acquire(timeout=0) is False
    assert lock.acquire(True, 0.001) is False
    assert lock.release() is None
    assert lock.locked() is False
    assert lock.acquire(True, 1.5) is True


def test_obsolete_names_work(lock: Any) -> None:
    assert lock.acquire_lock() is True
    assert lock.locked_lock() is True
    lock.release_lock()


def test_with_returns_true_and_releases_on_exceptions(lock: Any) -> None:
    def fail() -> None:
        with lock as entered:
            assert entered is True
            assert lock.locked()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not lock.locked()


def test_release_of_a_free_lock_is_a_runtime_error(lock: Any) -> None:
    with pytest.raises(RuntimeError, match="release unlocked lock"):
        lock.release()
    lock.acquire()
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


def test_any_thread_may_release(lock: Any) -> None:
    lock.acquire()
    other = threading.Thread(target=lock.release)
    other.start()
    other.join()
    assert lock.acquire(False)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((False, 1), ValueError),
        ((True, -2), ValueError),
        ((True, -0.5), ValueError),
        ((True, float("nan")), ValueError),
        ((True, 1e20), OverflowError),
        ((True, threading.TIMEOUT_MAX + 1000), OverflowError),
        ((True, "1"), TypeError),
        ((True, None), TypeError),
        ((True, 1, 2), TypeError),
    ],
)
def test_bad_arguments_fail_like_threading_lock(
    lock: Any, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error) as theirs:
        threading.Lock().acquire(*arguments)
    with pytest.raises(error) as ours:
        lock.acquire(*arguments)
    if error is ValueError:
        assert str(ours.value) == str(theirs.value)
    assert not lock.locked()


def test_the_largest_timeout_is_accepted(lock: Any) -> None:
    assert lock.acquire(timeout=threading.TIMEOUT_MAX) is True


def test_keywords_are_blocking_and_timeout(lock: Any) -> None:
    assert lock.acquire(blocking=True, timeout=-1)
    lock.release()
    with pytest.raises(TypeError):
        lock.acquire(block=True)
    with pytest.raises(TypeError):
        lock.acquire(True, blocking=True)


def test_weak_references_work(lock: Any) -> None:
    gone: list[bool] = []
    reference = weakref.ref(lock, lambda _: gone.append(True))
    assert reference() is lock


def test_weak_reference_callback_runs_when_the_lock_dies() -> None:
    for kind in KINDS.values():
        lock = kind()
        gone: list[bool] = []
        reference = weakref.ref(lock, lambda _, gone=gone: gone.append(True))
        del lock
        gc.collect()
        assert reference() is None
        assert gone == [True]


def test_locks_can_be_neither_pickled_nor_copied(lock: Any) -> None:
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"cannot pickle .* object"):
            attempt(lock)


def test_fork_reinit_frees_a_held_lock(lock: Any) -> None:
    lock.acquire()
    lock._at_fork_reinit()
    assert not lock.locked()
    assert lock.acquire(False)


def test_repr_tells_state_type_and_name() -> None:
    for kind in KINDS.values():
        lock = kind(name="cache 'x'")
        assert repr(lock).startswith(f"<unlocked contention_lab.locks.{kind.__name__} object")
        assert "cache 'x'" in repr(lock)
        with lock:
            assert repr(lock).startswith("<locked ")


def test_names_are_text_or_none() -> None:
    assert Mutex().name is None
    assert Mutex(None).name is None
    assert Mutex("a").name == "a"
    assert SpinLock(name="b").name == "b"
    with pytest.raises(TypeError, match="name must be a str or None, not int"):
        Mutex(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Mutex(nome="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Mutex("a", "b")  # type: ignore[call-arg]


@pytest.mark.parametrize("option", ["yield_after", "park_after"])
def test_spin_options_must_be_positive_round_counts(option: str) -> None:
    for bad in (0, -1, 2**32):
        with pytest.raises(ValueError, match=f"{option} must be a positive number of rounds"):
            SpinLock(**{option: bad})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SpinLock(**{option: "10"})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SpinLock("a", True)  # type: ignore[misc]


def test_subclasses_may_add_attributes_and_cycles() -> None:
    for kind in KINDS.values():

        class Named(kind):  # type: ignore[misc, valid-type]
            """A lock with a self-reference."""

        lock = Named("mine")
        lock.itself = lock
        reference = weakref.ref(lock)
        with lock:
            assert lock.locked()
        assert repr(lock).startswith("<unlocked ")
        del lock
        gc.collect()
        assert reference() is None


def test_condition_works_on_top(lock: Any) -> None:
    condition = threading.Condition(lock)
    items: list[int] = []

    def produce() -> None:
        with condition:
            items.append(1)
            condition.notify()

    producer = threading.Thread(target=produce)
    with condition:
        producer.start()
        assert condition.wait_for(lambda: bool(items), timeout=10)
    producer.join()


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "threading.Lock"])
def test_eight_threads_exclude_each_other(name: str) -> None:
    lock = VARIANTS[name]()
    inside = 0
    total = 0
    most = 0

    def work() -> None:
        nonlocal inside, total, most
        for _ in range(300):
            with lock:
                inside += 1
                most = max(most, inside)
                value = total
                for _ in range(20):
                    pass
                total = value + 1
                inside -= 1

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert total == 8 * 300
    assert most == 1


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in SLOW])
def test_exclusion_holds_while_holders_give_the_gil_away(name: str) -> None:
    import time

    lock = VARIANTS[name]()
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(40):
            with lock:
                inside += 1
                time.sleep(0)
                most = max(most, inside)
                inside -= 1

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most == 1
