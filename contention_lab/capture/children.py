"""Recording child processes: what they find in their environment, and who passes it on.

A Python that is executed starts recording by itself (see `launch.py`) if its environment says so.
The program's own `os.environ` stays as it is: the variables are added where a process is executed.
Forked children are the session's business.
"""

import os
import sys

from contention_lab.capture import launch, unrecorded
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from contention_lab.capture.undo import Undo

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_ENVIRONMENT_OF_FORK_EXEC = 5
"""The position of the environment in the arguments of `_posixsubprocess.fork_exec`."""


def install(undo: "Undo", trace: str, level: str, layer: str, *, existing: bool) -> None:
    """Have every process that the program executes record itself, if it is a Python.

    Parameters
    ----------
    undo
        Where to note what was replaced.
    trace
        The absolute path of the parent's trace, which names those of the children.
    layer
        What they are to preload, or empty.
    level, existing
        As for the parent.
    """
    import _posixsubprocess

    passing = _Passing(trace, launch.child_variables(trace, level, layer, existing=existing))
    undo.call(passing.take_back)
    front = _core.Front(_posixsubprocess.fork_exec, passing.by_list)
    undo.set(_posixsubprocess, "fork_exec", front)
    if hasattr(sys.modules.get("subprocess"), "_fork_exec"):
        undo.set(sys.modules["subprocess"], "_fork_exec", front)
    for name in ("execve", "posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            undo.set(os, name, _core.Front(getattr(os, name), passing.by_mapping))
    undo.set(os, "execv", _core.Front(os.execv, passing.to_execv))
    undo.set(os, "system", _core.Front(os.system, passing.to_system))


class _Passing:
    """Passes the variables on, in each of the ways in which a process gets its environment."""

    def __init__(self, trace: str, variables: "Mapping[str, str]") -> None:
        self._trace = trace
        self._variables = variables
        self._put: dict[str, str] = {}
        self.by_inheritance()

    def to_execv(self, path: "Any" = None, argv: "Any" = (), *_: "Any", **__: "Any") -> None:
        """Have the program that this process becomes inherit them."""
        self._look_at(path, argv)
        self.by_inheritance()

    def to_system(self, command: "Any" = "", **__: "Any") -> None:
        """Have what a shell starts inherit them."""
        unrecorded.note_command(self._trace, command)
        self.by_inheritance()

    def by_inheritance(self) -> None:
        """Change the C library's environment only: what a process gets that is given none."""
        for name, value in launch.add_to(os.environ, self._variables).items():
            if os.environ.get(name) != value:
                self._put[name] = value
                os.putenv(name, value)

    def by_list(self, *arguments: "Any", **others: "Any") -> "Arguments | None":
        """Change the environment that `fork_exec` is given: None, or NAME=value in bytes."""
        self._look_at_first(*arguments[:2])
        given = arguments[_ENVIRONMENT_OF_FORK_EXEC : _ENVIRONMENT_OF_FORK_EXEC + 1]
        if given == (None,):
            self.by_inheritance()
        if not given or not isinstance(given[0], list):
            return None
        pairs = {name: value for name, _, value in (pair.partition(b"=") for pair in given[0])}
        added = launch.add_to(pairs, self._variables, in_bytes=True)
        both = [name + b"=" + value for name, value in added.items()]
        place = _ENVIRONMENT_OF_FORK_EXEC
        return (*arguments[:place], both, *arguments[place + 1 :]), others

    def by_mapping(
        self, path: "Any", argv: "Any", env: "Any", **others: "Any"
    ) -> "Arguments | None":
        """Change the environment that `execve` and `posix_spawn` are given."""
        self._look_at(path, argv)
        if env is None:
            self.by_inheritance()
            return None
        in_bytes = any(isinstance(name, bytes) for name in env)
        return (path, argv, launch.add_to(env, self._variables, in_bytes=in_bytes)), others

    def _look_at_first(self, argv: "Any" = (), paths: "Any" = ()) -> None:
        """Look at the first of some paths that there is."""
        for path in paths if isinstance(paths, list | tuple) else ():
            if self._look_at(path, argv):
                return

    def _look_at(self, path: "Any", argv: "Any") -> bool:
        """Note a process that cannot be recorded; return whether there is such a program."""
        try:
            there = isinstance(path, int) or os.access(path, os.X_OK)
        except (TypeError, ValueError):
            return False
        if there:
            unrecorded.note_if_closed(self._trace, path, argv)
        return there

    def take_back(self) -> None:
        """Give the C library's environment back what `os.environ` has."""
        for name in self._put:
            if name in os.environ:
                os.putenv(name, os.environ[name])
            else:
                os.unsetenv(name)
