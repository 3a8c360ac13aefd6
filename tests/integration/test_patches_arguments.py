"""Locks of a recording take what Python's own take, and describe themselves as these do."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from test_record_faults import environment

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import inspect, threading

def outcome(call):
    try:
        return repr(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"

CALLS = [
    (1.5,), ("x",), ("",), (None,), ([],), (2,), (0,), (-1,), (2**40,), (-2**40,), (2**80,),
    (True, None), (True, "x"), (True, 1e300), (True, -2), (True, float("nan")),
    (True, float("inf")), (True, 2**70), (True, 2**62), (True, 10**10), (True, 9e9), (False, 1),
    (False, 0), (0, 0.0), (True, 0), (True, 0.0), (True, -1), (True, -1.0), (True, -0.5),
    (True, -1e-10), (1, 2, 3),
]
NAMED = [
    {"blocking": "x"}, {"timeout": "x"}, {"foo": 1}, {"blocking": 1, "timeout": 1}, {"blocking": 0},
]
METHODS = [
    ("__enter__", (1,)), ("__enter__", (1, -5)), ("__exit__", ()), ("__exit__", (1, 2, 3, 4)),
    ("release", (1,)), ("locked", (1,)), ("_at_fork_reinit", (1,)), ("acquire_lock", ()),
    ("release_lock", ()), ("locked_lock", ()), ("_release_save", ()), ("_acquire_restore", (1,)),
    ("_acquire_restore", ((1,),)), ("_recursion_count", ()),
]
DESCRIBED = [
    "__enter__", "__exit__", "acquire", "acquire_lock", "release", "locked", "_at_fork_reinit",
    "_recursion_count", "_acquire_restore",
]
for make in (threading.Lock, threading.RLock, threading.Condition):
    for args in CALLS:
        print(make.__name__, args, outcome(lambda: make().acquire(*args)))
    for named in NAMED:
        print(make.__name__, named, outcome(lambda: make().acquire(**named)))
    print(outcome(lambda: make().acquire(1, blocking=1)))
    for name, args in METHODS:
        print(make.__name__, name, args, outcome(lambda: getattr(make(), name)(*args)))
    lock = make()
    print(type(make), make.__doc__, outcome(lambda: inspect.signature(make)))
    print(type(type(lock)), type(lock), type(lock).__doc__)
    print(outcome(lambda: inspect.signature(type(lock))))
    for name in DESCRIBED:
        method = getattr(lock, name, None)
        print(name, method.__doc__, outcome(lambda: inspect.signature(method)))
"""


def printed(folder: Path, *options: str) -> list[str]:
    (folder / "program.py").write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", *options, "program.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=100,
        check=True,
    )
    return re.sub(r"0x[0-9a-f]{6,}", "0x", run.stdout).splitlines()


def test_calls_and_descriptions_are_those_of_pythons_own_locks(tmp_path: Path) -> None:
    own = printed(tmp_path)
    assert len(own) > 100
    assert printed(tmp_path, "-m", "contention_lab", "record", "-q") == own
