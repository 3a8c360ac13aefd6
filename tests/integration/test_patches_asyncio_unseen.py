"""What a program can find out about asyncio's own methods is the same with and without a recording.

Each scene below is run both ways and tells what it saw: frames of tracebacks with file, function
and line, stacks of tasks, chains of awaited coroutines, representations, and warnings.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
import sys
import traceback
import types
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

METHODS: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
    "Lock.acquire": lambda: held_lock().acquire(),
    "Semaphore.acquire": lambda: asyncio.Semaphore(0).acquire(),
    "BoundedSemaphore.acquire": lambda: asyncio.BoundedSemaphore(0).acquire(),
    "Event.wait": lambda: asyncio.Event().wait(),
    "Queue.get": lambda: asyncio.Queue().get(),
    "Queue.put": lambda: full_queue().put(2),
    "Condition.wait": lambda: wait_for_notify(),
    "wait_for": lambda: asyncio.wait_for(held_lock().acquire(), 60),
    "async with Lock": lambda: enter(held_lock()),
}
"""By what waits: something that waits for ever."""


def held_lock() -> asyncio.Lock:
    lock = asyncio.Lock()
    lock.acquire().close()
    with pytest.raises(StopIteration):
        lock.acquire().send(None)
    return lock


def full_queue() -> asyncio.Queue[int]:
    queue: asyncio.Queue[int] = asyncio.Queue(1)
    queue.put_nowait(1)
    return queue


async def wait_for_notify() -> None:
    condition = asyncio.Condition()
    async with condition:
        await condition.wait()


async def enter(lock: asyncio.Lock) -> None:
    async with lock:
        pass


class Odd(BaseException):
    """What nobody expects."""


def frames(error: BaseException | None) -> list[Any]:
    """Files, functions, lines, columns of a traceback, and those of what it came from."""
    if error is None:
        return []
    found: list[Any] = [
        (frame.filename, frame.name, frame.lineno, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return [type(error).__name__, str(error), found, *frames(error.__context__)]


def chain(coroutine: Any) -> list[str]:
    """What a coroutine awaits, as far as that goes."""
    found = []
    while coroutine is not None:
        code = getattr(coroutine, "cr_code", None)
        frame = getattr(coroutine, "cr_frame", None)
        found.append(
            f"{type(coroutine).__name__} {getattr(code, 'co_qualname', '')}"
            f" {getattr(frame, 'f_lineno', '')} {sorted(getattr(frame, 'f_locals', ()))}"
        )
        coroutine = getattr(coroutine, "cr_await", None)
    return found


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|Task-\d+", "...", text)


def both_ways(path: Path, scene: Callable[[], Any]) -> None:
    """Run a scene without and with a recording and compare what it saw."""
    without = scene()
    with cl.record(path):
        recorded = scene()
    assert recorded == without
    assert scene() == without


@pytest.mark.parametrize("method", METHODS)
def test_a_task_that_waits_looks_the_same(method: str, tmp_path: Path) -> None:
    async def look() -> Any:
        task = asyncio.create_task(METHODS[method]())  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen = [
            chain(task.get_coro()),
            [(f.f_code.co_filename, f.f_code.co_name, f.f_lineno) for f in task.get_stack()],
            without_addresses(repr(task)),
            without_addresses(repr(task.get_coro())),
        ]
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return [*seen, frames(caught.value)]

    both_ways(tmp_path / "run.clt", lambda: asyncio.run(look()))


@pytest.mark.parametrize("method", [name for name in METHODS if name != "wait_for"])
def test_what_is_thrown_into_a_wait_comes_out_the_same(method: str, tmp_path: Path) -> None:
    async def throw(error: BaseException) -> Any:
        coroutine = METHODS[method]()
        coroutine.send(None)
        with pytest.raises(type(error)) as caught:
            coroutine.throw(error)
        return frames(caught.value)

    def scene() -> Any:
        return [asyncio.run(throw(error)) for error in (ValueError("thrown"), Odd("thrown"))]

    both_ways(tmp_path / "run.clt", scene)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "wait_for"])
def test_a_coroutine_that_is_closed_or_never_awaited_says_the_same(
    method: str, tmp_path: Path
) -> None:
    async def main() -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            METHODS[method]()
            gc.collect()
            closed = METHODS[method]()
            closed.send(None)
            closed.close()
        return [
            (str(warning.message), warning.filename, warning.lineno, warning.category)
            for warning in caught
        ], chain(closed)

    both_ways(tmp_path / "run.clt", lambda: asyncio.run(main()))


def test_refusals_have_the_same_traceback(tmp_path: Path) -> None:
    async def refusals() -> Any:
        found = []
        for refused in (
            lambda: asyncio.Lock().release(),
            lambda: asyncio.Semaphore(-1),
            lambda: asyncio.BoundedSemaphore().release(),
            lambda: asyncio.Condition().notify(),
            lambda: asyncio.Lock(1),  # type: ignore[call-arg]
            lambda: asyncio.Lock().acquire(1),  # type: ignore[call-arg]
            lambda: asyncio.Queue().get_nowait(),
            lambda: full_queue().put_nowait(2),
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011
                refused()
            found.append(frames(caught.value))
        with pytest.raises(RuntimeError) as caught:
            await asyncio.Condition().wait()
        found.append(frames(caught.value))
        with pytest.raises(TimeoutError) as late:
            await asyncio.wait_for(held_lock().acquire(), 0.001)
        found.append(frames(late.value))
        return found

    both_ways(tmp_path / "run.clt", lambda: asyncio.run(refusals()))


def test_a_lock_of_another_loop_is_refused_with_the_same_traceback(tmp_path: Path) -> None:
    async def bound(lock: asyncio.Lock) -> None:
        await lock.acquire()
        waiting = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        waiting.cancel()

    def scene() -> Any:
        lock = asyncio.Lock()
        asyncio.run(bound(lock))
        with pytest.raises(RuntimeError) as caught:
            asyncio.run(enter(lock))
        return [without_addresses(str(each)) for each in frames(caught.value)]

    both_ways(tmp_path / "run.clt", scene)


def test_an_exception_in_a_callback_of_the_loop_is_reported_the_same(tmp_path: Path) -> None:
    async def main() -> Any:
        seen: list[Any] = []

        def fail() -> None:
            raise ValueError("in a callback")

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: seen.append(context))
        handle = loop.call_soon(fail)
        told = [without_addresses(repr(handle))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (context,) = seen
        return [*told, frames(context["exception"]), without_addresses(context["message"])]

    both_ways(tmp_path / "run.clt", lambda: asyncio.run(main()))


def test_functions_are_the_same_objects_of_the_same_kind(tmp_path: Path) -> None:
    def scene() -> Any:
        seen = []
        for owner in (
            asyncio.Lock,
            asyncio.Semaphore,
            asyncio.BoundedSemaphore,
            asyncio.Condition,
            asyncio.Event,
            asyncio.Queue,
            asyncio.Handle,
            asyncio.Timeout,
        ):
            for name, function in vars(owner).items():
                if isinstance(function, types.FunctionType):
                    code = function.__code__
                    seen.append(
                        (
                            owner,
                            name,
                            id(function),
                            inspect.iscoroutinefunction(function),
                            inspect.signature(function),
                            inspect.getsource(function),
                            vars(function),
                            code.co_varnames,
                            code.co_firstlineno,
                            code.co_flags,
                            code.co_filename,
                            code.co_qualname,
                        )
                    )
        seen.append((id(asyncio.wait_for), inspect.getsource(asyncio.wait_for)))
        seen.append([sorted(vars(sys.modules[f"asyncio.{m}"])) for m in ("locks", "queues")])
        return seen

    both_ways(tmp_path / "run.clt", scene)


def test_debug_mode_tells_the_same_origins(tmp_path: Path) -> None:
    async def origins() -> Any:
        lock = held_lock()
        sys.set_coroutine_origin_tracking_depth(4)
        coroutine = lock.acquire()
        origin = coroutine.cr_origin  # type: ignore[attr-defined]
        coroutine.close()
        sys.set_coroutine_origin_tracking_depth(0)
        return origin

    both_ways(tmp_path / "run.clt", lambda: asyncio.run(origins(), debug=True))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_eager_tasks_wait_and_are_recorded(tmp_path: Path) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        lock = asyncio.Lock()

        async def turn() -> None:
            async with lock:
                await asyncio.sleep(0.01)

        await asyncio.gather(*(asyncio.create_task(turn(), name=name) for name in "ab"))

    path = tmp_path / "run.clt"
    with cl.record(path):
        asyncio.run(main())
    trace = cl.load(path)
    (wait,) = trace.waits
    (hold,) = [hold for hold in trace.holds if hold["lock"] == wait["lock"]]
    assert hold["thread"] == wait["holder"]
    assert wait["thread"] != wait["holder"]
