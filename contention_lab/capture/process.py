"""Functions of `os` that matter to a recording: those that fork a process, and those that end it.

`os._exit` and executing a program do not run exit handlers: the trace is completed first. Which
recording it is, is asked when it happens. Around a fork the recorder's threads are away.
"""

import os

from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from contention_lab.capture.session import Session
    from contention_lab.capture.undo import Undo


def install(undo: "Undo", active: "Callable[[], Session | None]") -> None:
    """Stand before these functions."""
    stopped: list[Session] = []

    def before_exit(*_: "Any", **__: "Any") -> None:
        session = active()
        if session is not None:
            session.complete()

    def before_exec(path: "Any" = None, *_: "Any", **__: "Any") -> None:
        session = active()
        if session is not None and _is_program(path):
            stopped.append(session)
            session.complete(to_execute=True)

    def after_failed_exec() -> None:
        if stopped:
            stopped.pop().continue_elsewhere()

    for name in ("fork", "forkpty"):
        if hasattr(os, name):
            front = _core.Front(getattr(os, name), _core.fork_called, None, _core.fork_returned)
            undo.set(os, name, front)
    undo.set(os, "_exit", _core.Front(os._exit, before_exit))
    undo.set(os, "execv", _core.Front(os.execv, before_exec, after_failed_exec))
    undo.set(os, "execve", _core.Front(os.execve, before_exec, after_failed_exec))


def _is_program(path: "Any") -> bool:
    """Whether executing it will probably succeed: `execvp` tries every folder of PATH."""
    try:
        return isinstance(path, int) or os.access(path, os.X_OK)
    except (TypeError, ValueError):
        return False
