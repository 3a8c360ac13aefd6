"""asyncio's event loop: callbacks that keep it for long, and who else was ready to run meanwhile.

Every callback and every step of a task runs through `Handle._run`, where probes time it. Only what
took long is described here, after the fact: whose step it was, and who had to wait for it. Loops
that do not use asyncio's handles (uvloop) are not seen.
"""

from contention_lab.capture.patches.probe_places import after_try, at_start
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.patches.tasks import Task
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any, Final

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo

_PLACES: "Final[dict[str, tuple[Place, ...]]]" = {
    "_run": (at_start("{begins} @ self"), after_try("{ended} @ self")),
}

_MOST_TIMERS = 64
"""Timers looked at: the heap's first ones are due first, more or less."""


def install(undo: "Undo", module: "ModuleType") -> None:
    """Time `Handle._run`."""
    insert(undo, module.Handle, _PLACES, _PROBES)


def _slow(handle: "Any", start_ns: int, end_ns: int, others: int) -> None:
    """Record that `handle` took from `start_ns` to `end_ns`; `others` were ready at its start."""
    if not _core.active():
        return
    task = _task_of(handle._callback)
    victim = None
    late = 0
    for other, is_late in _delayed(handle._loop, others):
        waiting = _task_of(other._callback) or _sleeper(other)
        if waiting is not None and waiting is task:
            others -= not is_late
            continue
        late += is_late
        victim = victim or waiting
    ready = others + late
    _core.emit_step(
        start_ns,
        end_ns,
        0 if task is None else Task.of(task).party,
        _stack(handle._callback, task),
        max(0, ready),
        0 if victim is None else Task.of(victim).party,
        0 if victim is None else Task.of(victim).stack(),
    )


def _delayed(loop: "Any", others: int) -> "Iterator[tuple[Any, bool]]":
    """Yield handles that were ready all the time, and timers that have become due."""
    ready = getattr(loop, "_ready", ())
    for handle in [*ready][:others]:
        if not handle._cancelled:
            yield handle, False
    now = loop.time()
    for timer in [*getattr(loop, "_scheduled", ())][:_MOST_TIMERS]:
        if not timer._cancelled and timer._when <= now:
            yield timer, True


def _task_of(callback: "Any") -> "Any":
    """Return the task whose step a callback is, None if it is none."""
    owner = getattr(callback, "__self__", None)
    return owner if hasattr(owner, "get_coro") else None


def _sleeper(timer: "Any") -> "Any":
    """Return the task that a timer would wake, by way of the future it completes."""
    for argument in timer._args or ():
        for entry in getattr(argument, "_callbacks", None) or ():
            task = _task_of(entry[0] if type(entry) is tuple else entry)
            if task is not None:
                return task
    return None


def _stack(callback: "Any", task: "Any") -> int:
    """Return where the task stands now, or the function of the callback; 0 if that is not known."""
    if task is not None:
        stack = Task.of(task).stack()
        code = getattr(task.get_coro(), "cr_code", None)
        return stack or (0 if code is None else _core.intern_stack([(code, 0)]))
    function = getattr(callback, "func", callback)  # of a partial
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return 0 if code is None else _core.intern_stack([(code, 0)])


_PROBES: "Final" = {
    "begins": _core.Probe(_core.step_begins),
    "ended": _core.Probe(_core.step_ended, _slow),
}
