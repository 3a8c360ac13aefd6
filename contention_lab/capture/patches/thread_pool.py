"""`ThreadPoolExecutor`: how long tasks wait for a worker, and how long workers are busy.

A task that waits is no thread that waits: it is a party of its own, its wait is coordination, and
no thread's time contains it. Each task that runs is a hold of its worker on the pool, so the pool's
utilisation is the number of busy workers; these holds are recorded, within limits, although nobody
waits for them as for a lock. The semaphore inside is not recorded.
"""

from contention_lab.capture.patches import recording
from contention_lab.capture.patches.executors import Executor, submitting
from contention_lab.capture.patches.permits import COORDINATION
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
_FUNCTION = type(lambda: None)
_METHOD = type((lambda self: self).__get__(0))


class Queued:
    """Where and when a task was submitted.

    Attributes
    ----------
    executor
        The pool it waits for.
    """

    __slots__ = ("_recording", "_stack", "_start_ns", "executor")

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._recording = recording.number
        self._stack = _core.capture_stack()
        self._start_ns = _core.now()

    def begun(self, name: str, cancelled: bool) -> None:
        """Record the wait of the task called `name`: a worker has taken it just now."""
        if self._recording != recording.number:
            return
        _core.emit_wait(
            self.executor.workers,
            _core.party(name),
            self._start_ns,
            _core.now(),
            _core.CANCELLED if cancelled else _core.ACQUIRED,
            COORDINATION,
            self._stack,
            *(0, 0, 0, 0),
        )


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
        if submitting.executor is not None:
            self._contention_lab_queued = Queued(submitting.executor)

    return __init__


def _run(original: "Callable[..., None]") -> "Callable[..., None]":
    def run(self: "Any", *args: "Any") -> None:
        queued = vars(self).pop("_contention_lab_queued", None)
        if queued is None or not _core.active():
            return original(self, *args)
        cancelled = self.future._state != "PENDING"
        queued.begun(_name(self), cancelled)
        workers = queued.executor.workers
        number = recording.number
        permit = None if cancelled else _core.take(workers)
        del queued
        _core.watch(workers, True)
        try:
            return original(self, *args)
        finally:
            self = None  # the task must not live longer than without us
            if permit is not None and number == recording.number:
                _core.give(workers, permit)
            _core.watch(workers, False)

    return run


def _name(item: "Any") -> str:
    """Return what to call a task, by its function, without asking anything of the program's."""
    fields = vars(item)
    function = fields["fn"] if "fn" in fields else fields["task"][0]
    inner = getattr(function, "__func__", function) if type(function) is _METHOD else function
    named = inner if type(inner) is _FUNCTION else type(function)
    return named.__qualname__.rpartition("<locals>.")[2]
