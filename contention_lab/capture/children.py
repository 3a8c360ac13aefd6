"""Recording child processes: what they find in their environment, and who passes it on.

A Python that is executed starts recording by itself (see `launch.py`) if its environment says so.
The program's own `os.environ` stays as it is: the variables are added where a process is executed.
Forked children are the session's business.
"""

import os
import sys

from contention_lab.capture import launch
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from contention_lab.capture.undo import Undo

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_ENVIRONMENT_OF_FORK_EXEC = 5
"""The position of the environment in the arguments of `_posixsubprocess.fork_exec`."""


def install(undo: "Undo", trace: str, level: str, *, existing: bool) -> None:
    """Have every process that the program executes record itself, if it is a Python.

    Parameters
    ----------
    undo
        Where to note what was replaced.
    trace
        The absolute path of the parent's trace, which names those of the children.
    level, existing
        As for the parent.
    """
    variables = launch.child_variables(trace, level, existing=existing)

    def with_ours(environment: "Mapping[Any, Any]") -> "dict[Any, Any]":
        return launch.add_to(environment, variables)

    def fork_exec(*arguments: "Any") -> "Arguments":
        place = _ENVIRONMENT_OF_FORK_EXEC
        given = arguments[place]
        if given is None:
            pairs: Mapping[bytes, bytes] = os.environb
        else:
            pairs = dict(pair.split(b"=", 1) for pair in given if b"=" in pair)
        added = [name + b"=" + value for name, value in with_ours(pairs).items()]
        return (*arguments[:place], added, *arguments[place + 1 :]), {}

    def execute(path: "Any", argv: "Any", env: "Any", **others: "Any") -> "Arguments":
        return (path, argv, with_ours(os.environ if env is None else env)), others

    import _posixsubprocess

    front = _core.Front(_posixsubprocess.fork_exec, fork_exec)
    undo.set(_posixsubprocess, "fork_exec", front)
    if hasattr(sys.modules.get("subprocess"), "_fork_exec"):
        undo.set(sys.modules["subprocess"], "_fork_exec", front)
    undo.set(os, "execve", _core.Front(os.execve, execute))
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            undo.set(os, name, _core.Front(getattr(os, name), execute))
    _put(undo, variables)


def _put(undo: "Undo", variables: "Mapping[str, str]") -> None:
    """Change the C library's environment, which `os.system` and `os.execv` pass on, only."""
    for name, value in launch.add_to(os.environ, variables).items():
        if os.environ.get(name) != value:
            os.putenv(name, value)
            undo.call(lambda name=name: _put_back(name))  # type: ignore[misc]


def _put_back(name: str) -> None:
    if name in os.environ:
        os.putenv(name, os.environ[name])
    else:
        os.unsetenv(name)
