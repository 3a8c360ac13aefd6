"""Recording code around a function of Python's: it is called each time, and nobody can tell."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import sys
import textwrap
import traceback
import types
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl
from contention_lab.capture.patches.around import put_around
from contention_lab.capture.undo import Undo
from contention_lab.native import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Base:
    def __init__(self, x: int = 1) -> None:
        """Keep it."""
        self.x = x

    def method(self, y: int = 2) -> int:
        """Return the sum."""
        if y < 0:
            raise ValueError(y)
        return self.x + y

    def places(self) -> list[str]:
        """Name the functions that are going on."""
        return [frame.name for frame in traceback.extract_stack()]

    alias = method


class Derived(Base):
    def method(self, y: int = 2) -> int:
        return super().method(y)


METHODS = ("__init__", "method", "places")
FUNCTIONS: dict[str, Any] = {name: vars(Base)[name] for name in METHODS}


class Calls:
    """Counts what comes before and after."""

    def __init__(self) -> None:
        self.before = self.after = self.failed = 0

    def note(self, thing: Any) -> Any:
        self.before += 1
        return thing

    def end(self, kept: Any, result: Any, failed: bool) -> None:
        self.after += 1
        self.failed += failed


calls = Calls()


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Calls]:
    """Put counting around the methods, which have been called often before, and specialised."""
    work(100)
    undo = Undo()
    with cl.record(tmp_path / "run.clt"):
        for name in METHODS:
            put_around(undo, Base, name, (calls.note, calls.end))
        calls.__init__()  # type: ignore[misc]
        yield calls
        undo.restore()


def work(times: int) -> int:
    """Call in every way there is: `times` times nine calls."""
    base, derived, kept = Base(), Derived(3), Base.method
    for _ in range(times):
        Base(5)
        Base()
        Derived(2)
        base.method()
        derived.method(3)
        base.alias(y=4)
        base.method(*(1,))
        kept(base, 3)
        with pytest.raises(ValueError, match="-7"):
            base.method(-7)
    return 9 * times + 2


def test_every_call_is_seen_however_it_is_made(recorded: Calls) -> None:
    for times in (10, 1000):
        recorded.__init__()  # type: ignore[misc]
        expected = work(times)
        assert (recorded.before, recorded.after, recorded.failed) == (expected, expected, times)


def test_no_frame_is_added_to_stacks_and_tracebacks(recorded: Calls) -> None:
    base = Base()
    assert base.places()[-2:] == ["test_no_frame_is_added_to_stacks_and_tracebacks", "places"]
    with pytest.raises(ValueError, match="-1") as caught:
        base.method(-1)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_no_frame_is_added_to_stacks_and_tracebacks", "method"]


def definition(function: Any) -> ast.FunctionDef:
    """Return the function's text, as a tree."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.mark.parametrize("name", METHODS)
def test_the_function_is_the_object_that_it_was(name: str, recorded: Calls) -> None:
    function = vars(Base)[name]
    assert function is FUNCTIONS[name]
    assert inspect.isfunction(function)
    assert function.__class__ is types.FunctionType
    assert copy.copy(function) is copy.deepcopy(function) is function
    assert pickle.loads(pickle.dumps(function)) is function
    assert pickle._loads(pickle._dumps(function)) is function  # type: ignore[attr-defined]
    assert repr(function).startswith(f"<function Base.{name} at 0x")
    assert weakref.ref(function)() is function
    assert definition(function).name == name
    assert inspect.getdoc(function) == ast.get_docstring(definition(function))
    assert repr(type(function)) == "<class 'function'>"
    if sys.version_info >= (3, 12):
        assert type(function) is types.FunctionType


def test_wrong_arguments_are_refused_by_the_function_itself(recorded: Calls) -> None:
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 4 were given"):
        Base().method(1, 2, 3)  # type: ignore[call-arg]


def test_what_fails_around_it_changes_nothing(
    recorded: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        def method(self) -> int:
            return 7

    def fail(*args: Any) -> None:
        raise OSError("of ours")

    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    undo = Undo()
    put_around(undo, Other, "method", (None, fail))
    assert Other().method() == 7
    undo.restore()
    assert [str(report.exc_value) for report in reported] == ["of ours"]


def test_nothing_is_left_of_it_afterwards(tmp_path: Path) -> None:
    undo = Undo()
    with cl.record(tmp_path / "run.clt"):
        for name in METHODS:
            put_around(undo, Base, name, (calls.note, calls.end))
            assert not _core.put_around(Base, name, vars(Base)[name], (None, calls.end), None)
        undo.restore()
        calls.__init__()  # type: ignore[misc]
        work(1000)
    assert calls.before == 0
    assert all(type(vars(Base)[name]) is types.FunctionType for name in METHODS)


def test_what_is_no_function_of_python_is_left_alone() -> None:
    class Odd:
        method = len

    undo = Undo()
    put_around(undo, Odd, "method", (None, calls.end))
    put_around(undo, Odd, "missing", (None, calls.end))
    assert vars(Odd)["method"] is len
