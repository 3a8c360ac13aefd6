"""`ThreadPoolExecutor`: how long tasks wait for a worker, and how long workers are busy.

A task that waits is no thread that waits: it is a party of its own, its wait is coordination, and
no thread's time contains it. Each task that runs is a hold of its worker on the pool, so the pool's
utilisation is the number of busy workers; these holds are recorded, within limits, although nobody
waits for them as for a lock. The semaphore inside is not recorded.
"""

from functools import partial

from contention_lab.capture.patches.executors import Executor, submitting
from contention_lab.capture.patches.semaphore import SemaphorePermits
from contention_lab.capture.patches.wrapping import wrap
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo

_TAKES_ANY_KEYWORD = 0x08


def install(undo: "Undo", module: "ModuleType") -> None:
    """Wrap making a pool, submitting, and queueing and running a task."""
    wrap(undo, module.ThreadPoolExecutor, "__init__", _made)
    wrap(undo, module.ThreadPoolExecutor, "submit", _submitted)
    wrap(undo, module._WorkItem, "__init__", _queued)
    wrap(undo, module._WorkItem, "run", _run)


def _executor(pool: "Any") -> Executor:
    known = Executor.table.get(id(pool))
    return known or Executor(pool, "concurrent.futures.ThreadPoolExecutor")


def _note(pool: "Any") -> None:
    _executor(pool)
    SemaphorePermits.silence(pool._idle_semaphore)


def _made(original: "Callable[..., None]") -> "Callable[..., None]":
    if original.__code__.co_flags & _TAKES_ANY_KEYWORD:  # since Python 3.14

        def __init__(  # noqa: N807
            self: "Any",
            max_workers: int | None = None,
            thread_name_prefix: str = "",
            initializer: "Any" = None,
            initargs: "Any" = (),
            **ctxkwargs: "Any",
        ) -> None:
            original(self, max_workers, thread_name_prefix, initializer, initargs, **ctxkwargs)
            _note(self)

        return __init__

    def __init__(  # type: ignore[no-redef]  # noqa: N807
        self: "Any",
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: "Any" = None,
        initargs: "Any" = (),
    ) -> None:
        original(self, max_workers, thread_name_prefix, initializer, initargs)
        _note(self)

    return __init__


def _submitted(original: "Callable[..., Any]") -> "Callable[..., Any]":
    def submit(self: "Any", fn: "Any", /, *args: "Any", **kwargs: "Any") -> "Any":
        if not _core.active():
            return original(self, fn, *args, **kwargs)
        submitting.executor = _executor(self)
        try:
            return original(self, fn, *args, **kwargs)
        finally:
            submitting.executor = None

    return submit


def _queued(original: "Callable[..., None]") -> "Callable[..., None]":
    def __init__(self: "Any", *args: "Any") -> None:  # noqa: N807
        original(self, *args)
        executor = submitting.executor
        if executor is not None:
            self._contention_lab_queued = _core.PoolTask(executor.workers)

    return __init__


def _run(original: "Callable[..., None]") -> "Callable[..., None]":
    def run(self: "Any", *args: "Any") -> None:
        fields = vars(self)
        queued = fields.pop("_contention_lab_queued", None)
        if queued is None:
            return original(self, *args)
        task = fields["fn"] if "fn" in fields else fields["task"][0]
        while type(task) is partial:
            task = task.func
        queued.begun(task, self.future._state != "PENDING")
        del fields, task
        try:
            return original(self, *args)
        finally:
            self = None  # the task must not live longer than without us
            queued.ended()

    return run
