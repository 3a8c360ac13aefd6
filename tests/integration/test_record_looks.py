"""What a program can see of lock types and of recorded functions, with and without a recording."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]

SHOW = """
import asyncio.locks, asyncio.queues, asyncio.tasks, asyncio.timeouts, concurrent.futures.thread
import copy, inspect, logging, multiprocessing.synchronize, pickle, pydoc, queue, re, sys
import threading, types, typing, weakref, _thread
from unittest import mock

def show(what, look):
    try:
        seen = look()
    except Exception as error:
        seen = f"{type(error).__name__}: {error}"
    print(what, re.sub("(0x|owner=)[0-9a-f]+", "", str(seen)))
"""

FACTORIES = """
for what in ("threading.Lock", "threading.RLock", "_thread.allocate_lock", "_thread.allocate",
             "_thread.LockType", "_thread.RLock", "queue.SimpleQueue"):
    make = eval(what)
    look = lambda text: show(f"{what} {text}", lambda: eval(text))
    for name in ("name", "qualname", "module", "doc", "self", "text_signature", "mro", "class"):
        look(f"make.__{name}__")
    for text in ("type(make)", "type(make) is type", "repr(make)", "dir(make)", "make | None",
                 "None | make", "typing.Optional[make]", "inspect.signature(make)", "make[int]",
                 "pydoc.render_doc(make)", "inspect.isclass(make)", "inspect.isbuiltin(make)",
                 "pickle.dumps(make, 0)", "pickle.loads(pickle.dumps(make)) is make",
                 "copy.deepcopy(make) is make", "weakref.ref(make)() is make", "make(1)",
                 "make(a=1)", "type('S', (make,), {})", "setattr(make, 'x', 1)",
                 "mock.create_autospec(make)._spec_class", "isinstance(make(), make)"):
        look(text)
"""

LOCKS = """
for what in ("threading.Lock", "threading.RLock"):
    thing = eval(what)()
    look = lambda text: show(f"{what} {text}", lambda: eval(text))
    for text in ("thing", "type(thing)", "thing.__class__ is type(thing)", "dir(thing)",
                 "type(type(thing)) is type", "sorted(vars(type(thing)))", "vars(thing)",
                 "isinstance(thing, type(eval(what)()))", "type(thing) is type(eval(what)())",
                 "setattr(thing, '__class__', int)", "setattr(thing, 'x', 1)", "hash(thing) != 0",
                 "copy.copy(thing)", "copy.deepcopy(thing)", "weakref.ref(thing)() is thing",
                 "thing.acquire('x', 0, 3)", "thing.acquire(foo=1)", "thing.acquire(True, 1e30)",
                 "thing.acquire(True, '1')", "thing.acquire(False, 1)", "thing.acquire(True, -2)",
                 "thing.release()", "thing.__enter__()", "thing", "thing.__exit__()",
                 "thing < thing", "pydoc.render_doc(type(thing))", "type(thing) | None",
                 "type(thing)()", "setattr(type(thing), 'x', 1)", "pickle.dumps(type(thing), 0)",
                 "mock.create_autospec(thing).__class__ is type(thing)"):
        look(text)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        look(f"pickle.dumps(thing, {protocol})")
    for name in dir(type(thing)):
        look(f"type(thing).{name}.__doc__")
        look(f"inspect.signature(type(thing).{name})")
show("of the interpreter", lambda: (isinstance(threading._allocate_lock(), type(threading.Lock())),
                                    isinstance(threading._allocate_lock(), _thread.LockType)))
show("of logging", lambda: isinstance(logging._lock, type(threading.RLock())))
"""

FUNCTIONS = """
modules = (threading, queue, concurrent.futures.thread, multiprocessing.synchronize, asyncio.locks,
           concurrent.futures._base, asyncio.queues, asyncio.tasks, asyncio.timeouts)
for module in modules:
    for cls in [thing for _, thing in sorted(vars(module).items()) if isinstance(thing, type)]:
        for name, f in sorted(vars(cls).items()):
            if cls.__module__ != module.__name__ or not inspect.isfunction(f):
                continue
            if sys.version_info >= (3, 12):
                print(name, type(f) is types.FunctionType)
            show(f.__qualname__, lambda: (
                type(f), f, f.__class__, f.__name__, f.__module__, f.__doc__, vars(f),
                f.__defaults__, f.__kwdefaults__, f.__annotations__, hasattr(f, "__wrapped__"),
                inspect.signature(f), inspect.getsource(f), inspect.iscoroutinefunction(f),
                f.__code__.co_name, f.__code__.co_filename, f.__code__.co_firstlineno,
                f.__code__.co_varnames, f.__code__.co_flags, f.__code__.co_argcount,
                copy.deepcopy(f) is f, pickle.dumps(f, 0), pydoc.render_doc(f)))
            with mock.patch.object(cls, name, autospec=True) as stand_in:
                show(f.__qualname__, lambda: (type(stand_in), inspect.signature(stand_in)))
"""


def output(command: Sequence[str], folder: Path) -> list[str]:
    """Return the lines that a program prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "looks", [FACTORIES, LOCKS, FUNCTIONS], ids=["factories", "locks", "functions"]
)
def test_a_recorded_program_sees_what_it_sees_without_us(looks: str, tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text(SHOW + looks)
    without = output(["look.py"], tmp_path)
    recorded = output(["-m", "contention_lab", "record", "-q", "look.py"], tmp_path)
    assert len(without) > 50
    assert recorded == without
