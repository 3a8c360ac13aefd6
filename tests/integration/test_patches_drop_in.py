"""A lock is a drop-in or it is a bug: what a program can see of the patches, which is nothing."""

from __future__ import annotations

import abc
import asyncio
import copy
import importlib
import inspect
import io
import logging
import pickle
import queue
import subprocess
import sys
import textwrap
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl
from contention_lab.capture import patches
from contention_lab.capture.undo import Undo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAKERS: dict[str, Callable[[], Any]] = {
    "Lock": lambda: threading.Lock(),
    "RLock": lambda: threading.RLock(),
    "SimpleQueue": lambda: queue.SimpleQueue(),
    "Semaphore": lambda: threading.Semaphore(),
    "Condition": lambda: threading.Condition(),
    "Condition of a Lock": lambda: threading.Condition(threading.Lock()),
    "Event": lambda: threading.Event(),
    "Queue": lambda: queue.Queue(),
    "Future": lambda: Future(),
    "asyncio.Lock": lambda: asyncio.Lock(),
    "asyncio.Semaphore": lambda: asyncio.Semaphore(),
    "asyncio.Event": lambda: asyncio.Event(),
    "asyncio.Queue": lambda: asyncio.Queue(),
}
CLASSES = [
    *(threading.Condition, threading.Semaphore, threading.BoundedSemaphore, threading.Event),
    *(threading.Barrier, threading.Thread, queue.Queue, Future, ThreadPoolExecutor),
    *(asyncio.Lock, asyncio.Semaphore, asyncio.Condition, asyncio.Event, asyncio.Queue),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.clt"


def message(function: Callable[[], Any]) -> str:
    """Return what a call raises, as the user sees it, without addresses."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__qualname__}: {error}"
    return "nothing"


def described(thing: Any) -> dict[str, Any]:
    """Return what copying, pickling and looking at a thing gives."""
    return {
        "pickle": message(lambda: pickle.dumps(thing)),
        "copy": message(lambda: copy.copy(thing)),
        "deepcopy": message(lambda: copy.deepcopy(thing)),
        "type": repr(type(thing)),
        "attributes": sorted(vars(thing)) if hasattr(thing, "__dict__") else None,
        "weakref": weakref.ref(thing)() is thing,
        "hashable": isinstance(hash(thing), int),
        "module": type(thing).__module__,
        "annotation": message(lambda: type(thing) | None),
        "extra": message(lambda: setattr(thing, "extra", 1)),
        "on its type": message(lambda: setattr(type(thing), "extra", 1))
        if type(thing).__module__ == "_thread"
        else None,
    }


@pytest.mark.parametrize("name", MAKERS)
def test_objects_copy_pickle_and_look_as_without_us(name: str, path: Path) -> None:
    without = described(MAKERS[name]())
    with cl.record(path):
        recorded = described(MAKERS[name]())
    if name == "SimpleQueue":  # the message names the type without its module
        recorded["extra"] = recorded["extra"].replace("'SimpleQueue'", "'_queue.SimpleQueue'")
    assert recorded == without


@pytest.mark.parametrize("maker", [lambda: threading.Lock, lambda: threading.RLock])
def test_names_in_annotations_work_or_fail_as_without_us(
    maker: Callable[[], Any], path: Path
) -> None:
    def facts() -> list[str]:
        made = maker()
        return [
            message(lambda: made | None),
            message(lambda: None | made),
            message(lambda: type("Sub", (made,), {})),
            message(lambda: made(1, 2, 3)) if made is not threading.RLock else "",
            type(made).__name__,
            repr(made).partition(" at ")[0],
            made.__module__,
            made.__name__,
            message(lambda: pickle.dumps(made)),
        ]

    without = facts()
    with cl.record(path):
        assert facts() == without


def test_isinstance_holds_in_both_directions_and_in_time(path: Path) -> None:
    lock_type, rlock_type = type(threading.Lock()), type(threading.RLock())
    early = threading.Lock(), threading.RLock(), threading.Semaphore(), threading.Event()
    with cl.record(path):
        late = threading.Lock(), threading.RLock(), threading.Semaphore(), threading.Event()
        types = (
            type(threading.Lock()),
            type(threading.RLock()),
            threading.Semaphore,
            threading.Event,
        )
        for thing, cls in [*zip(early, types, strict=True), *zip(late, types, strict=True)]:
            assert isinstance(thing, cls)
        assert isinstance(late[0], lock_type)
        assert isinstance(late[1], rlock_type)
        assert not isinstance(late[0], rlock_type)
        assert not isinstance(late[1], types[0])
        assert not isinstance(3, types[0])
    assert isinstance(late[0], type(threading.Lock()))
    assert isinstance(late[1], type(threading.RLock()))


def test_simple_queues_are_instances_of_both_types(path: Path) -> None:
    original = queue.SimpleQueue
    with cl.record(path):
        line: Any = queue.SimpleQueue()
        assert isinstance(line, queue.SimpleQueue)
        assert queue.SimpleQueue[int] == queue.SimpleQueue[int]
    assert isinstance(line, original)
    assert queue.SimpleQueue is original
    line.put(1)
    assert line.get() == 1


def test_classes_of_the_program_can_be_derived(path: Path) -> None:
    with cl.record(path):

        class Named(threading.Semaphore):
            def __init__(self, name: str) -> None:
                super().__init__(2)
                self.name = name

            def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
                return super().acquire(blocking, timeout)

        class Abstract(queue.SimpleQueue, abc.ABC):  # type: ignore[type-arg]
            def __init__(self, name: str) -> None:
                self.name = name

        class Counted(type(threading.RLock())):  # type: ignore[misc]
            def __init__(self) -> None:
                self.taken = 0

            def __enter__(self) -> Any:
                self.taken += 1
                return super().__enter__()

        class Slow(asyncio.Lock):
            async def acquire(self) -> Any:
                return await super().acquire()

        class Own(threading.Condition):
            def wait(self, timeout: float | None = None) -> bool:
                return super().wait(timeout)

        named, line, counted = Named("a"), Abstract("b"), Counted()
        own = Own(counted)
        with named:
            pass
        line.put(1)
        with counted, own:
            assert not own.wait(0.001)

        async def main() -> None:
            async with Slow():
                pass

        asyncio.run(main())
    assert (named.name, line.name, line.get(), counted.taken) == ("a", "b", 1, 2)


def test_signatures_and_docstrings_are_those_of_the_originals(path: Path) -> None:
    def facts() -> dict[str, Any]:
        found = {}
        for cls in CLASSES:
            for name, function in inspect.getmembers(cls, inspect.isfunction):
                found[f"{cls.__qualname__}.{name}"] = (
                    inspect.signature(function),
                    inspect.getfullargspec(function),
                    function.__qualname__,
                    function.__module__,
                    function.__doc__,
                    inspect.iscoroutinefunction(function),
                    inspect.getsourcefile(inspect.unwrap(function)),
                )
        return found

    without = facts()
    with cl.record(path):
        recorded = facts()
    assert {name for name in without if recorded[name] != without[name]} <= set()


def test_wrong_arguments_are_refused_in_the_same_words(path: Path) -> None:
    def facts() -> list[str]:
        line: Any = queue.SimpleQueue()
        lock, again, event = threading.Lock(), threading.RLock(), threading.Semaphore()
        return [
            message(lambda: threading.Semaphore(-1)),
            message(lambda: threading.BoundedSemaphore().release()),
            message(lambda: event.release(0)),
            message(lambda: event.acquire(False, 1)),
            message(lambda: threading.Condition().notify()),
            message(lambda: threading.Condition().wait()),
            message(lambda: threading.Thread().join()),
            message(lambda: lock.release()),
            message(lambda: again.release()),
            message(lambda: lock.acquire(False, 1)),
            message(lambda: lock.acquire(timeout=-2)),
            message(lambda: line.get(True, -1)),
            message(lambda: line.get(timeout="soon")),
            message(lambda: line.get_nowait()),
            message(lambda: asyncio.Semaphore(-1)),
            message(lambda: asyncio.Lock().release()),
        ]

    without = facts()
    with cl.record(path):
        assert facts() == without


def test_logging_inside_logging_and_in_a_patched_call(path: Path) -> None:
    """A handler that takes locks and logs, as the incumbent could not bear."""
    out = io.StringIO()

    class Curious(logging.StreamHandler):  # type: ignore[type-arg]
        def emit(self, record: logging.LogRecord) -> None:
            with threading.Lock(), threading.Semaphore():
                if record.msg == "outer":
                    logger.warning("inner")
            super().emit(record)

    logger = logging.getLogger("test_patches_drop_in")
    logger.propagate = False
    with cl.record(path):
        logger.addHandler(Curious(out))
        logger.warning("outer")
    assert out.getvalue() == "inner\nouter\n"


def test_everything_is_put_back_and_can_be_done_again(path: Path) -> None:
    def state() -> dict[str, Any]:
        modules = ("threading", "_thread", "queue", "_queue", "asyncio.locks", "asyncio.queues")
        found = {
            f"{name}.{key}": value
            for name in modules
            for key, value in vars(sys.modules[name]).items()
        }
        for cls in (*CLASSES, sys.modules["_frozen_importlib"]._ModuleLock):
            found.update({f"{cls.__qualname__}.{key}": v for key, v in vars(cls).items()})
        found["import"] = sys.modules["_frozen_importlib"]._thread
        return found

    without = state()
    wrapped: list[Any] = []
    for _ in range(5):
        with cl.record(path):
            wrapped.append(threading.Condition.wait)
        now = state()
        assert {key for key in without if now[key] is not without[key]} <= {
            "threading._active_limbo_lock",
            "threading._shutdown_locks_lock",
        }
    assert len(set(wrapped)) == 1  # recordings leave nothing behind


def test_installing_twice_changes_nothing(path: Path) -> None:
    with cl.record(path):
        before = threading.Condition.wait, threading.Lock
        undo = Undo()
        patches.install(undo)
        assert (threading.Condition.wait, threading.Lock) == before
        undo.restore()


def test_whoever_patches_after_us_keeps_his_patch(path: Path) -> None:
    original = threading.Semaphore.acquire
    try:
        with cl.record(path):
            ours = threading.Semaphore.acquire

            def theirs(self: threading.Semaphore, *args: Any, **kwargs: Any) -> bool:
                return ours(self, *args, **kwargs)

            threading.Semaphore.acquire = theirs  # type: ignore[method-assign, assignment]
        assert threading.Semaphore.acquire is theirs
        assert threading.Semaphore().acquire()
    finally:
        threading.Semaphore.acquire = original  # type: ignore[method-assign]


def test_naming_touches_no_descriptor_of_the_program(path: Path) -> None:
    class Touchy:
        @property
        def name(self) -> str:
            raise AssertionError("touched")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError("touched")

        def __call__(self) -> int:
            return 1

    with cl.record(path, level="trace"):
        touchy = Touchy.__new__(Touchy)
        holder = {"lock": threading.Lock(), "touchy": touchy}
        with holder["lock"]:  # type: ignore[union-attr]
            pass
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(touchy).result() == 1


def test_a_module_imported_again_is_not_confused(path: Path) -> None:
    with cl.record(path):
        saved = sys.modules.pop("queue")
        try:
            again = importlib.import_module("queue")
            line = again.Queue()
            line.put(1)
            assert line.get() == 1
            assert again.SimpleQueue().empty()
        finally:
            sys.modules["queue"] = saved


GEVENT = """
    import sys
    import contention_lab as cl
    order = sys.argv[2]
    if order == "before":
        from gevent import monkey
        monkey.patch_all()
    import threading, time, queue
    with cl.record(sys.argv[1]):
        if order == "after":
            from gevent import monkey
            monkey.patch_all()
        import gevent
        lock, line, semaphore = threading.Lock(), queue.Queue(1), threading.Semaphore(1)
        done = []
        def work(number):
            for _ in range(3):
                with lock, semaphore:
                    time.sleep(0.001)
            line.put(number)
            done.append(number)
        jobs = [gevent.spawn(work, number) for number in range(4)]
        got = sorted(line.get() for _ in jobs)
        gevent.joinall(jobs, timeout=20)
        thread = threading.Thread(target=work, args=(9,))
        thread.start()
        thread.join(20)
        assert line.get() == 9
    print(got, sorted(done))
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_gevent_imported_before_and_after_works_on(order: str, path: Path) -> None:
    pytest.importorskip("gevent")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(GEVENT), path, order],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0, 1, 2, 3] [0, 1, 2, 3, 9]\n"
    assert cl.load(path).complete
