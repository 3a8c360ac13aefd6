"""Probes in functions: where they are put, what they are told, and when they are not put at all."""

from __future__ import annotations

import importlib.util
import random
import sys
import traceback
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl
from contention_lab.capture.patches.probe_places import (
    around_all,
    around_await,
    around_loop,
    around_rest,
    at_end,
    at_start,
    before_assignment,
    before_early_return,
)
from contention_lab.capture.patches.probes import insert
from contention_lab.capture.undo import Undo
from contention_lab.native import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from contention_lab.capture.patches.probe_places import Place

TEXT = "{told} @ self"
SOURCE = '''"""A module."""

import collections

class Door:
    """Something to pass."""

    def __init__(self):
        self.waiters = collections.deque()
        self.open = False

    def refuse(self, what):
        """Say so."""
        if what:
            raise ValueError(what)
        self.open = True
        return self.open

    async def enter(self, future):
        if self.open:
            return "at once"
        try:
            await future
        finally:
            self.waiters.clear()
        return "later"
'''


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "doors_under_test.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("doors_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["doors_under_test"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["doors_under_test"]


@pytest.fixture
def told() -> list[Any]:
    return []


@pytest.fixture(autouse=True)
def recording(tmp_path: Path) -> Iterator[None]:
    """Probes tell nothing while nothing is recorded."""
    with cl.record(tmp_path / "run.clt", level="counters"):
        yield


def probe(told: list[Any], name: str, **options: Any) -> Any:
    return _core.Probe(lambda *args: told.append((name, *args)) or name, **options)


def test_what_is_inserted_leaves_function_and_lines_as_they_were(
    module: ModuleType, told: list[Any]
) -> None:
    def lines() -> list[tuple[int | None, str]]:
        with pytest.raises(ValueError, match="no") as caught:
            module.Door().refuse("no")
        return [
            (frame.lineno, frame.name) for frame in traceback.extract_tb(caught.value.__traceback__)
        ]

    function, without, undo = module.Door.refuse, lines(), Undo()
    places = {
        "__init__": (at_end("{made} @ self"),),
        "refuse": (at_start("{asked} @ (self, what)"), before_assignment("{opens} @ self")),
    }
    probes = {name: probe(told, name) for name in ("made", "asked", "opens")}
    assert insert(undo, module.Door, places, probes)
    assert insert(undo, module.Door, places, probes)  # a second time changes nothing
    assert lines() == without
    assert [each[0] for each in told] == ["made", "asked"]
    door = module.Door()
    assert door.refuse("") is True
    assert told[2:] == [("made", door), ("asked", door, ""), ("opens", door)]
    assert module.Door.refuse is function
    assert function.__qualname__ == function.__code__.co_qualname == "Door.refuse"
    undo.restore()
    assert lines() == without
    assert len(told) == 5


def test_what_a_probe_begins_another_ends_in_the_same_frame_only(
    module: ModuleType, told: list[Any]
) -> None:
    begins = probe(told, "begins", keeps=_core.KEEPS_LAST)
    probes = {
        "at_once": probe(told, "at_once"),
        "begins": begins,
        "failed": probe(told, "failed", begin=begins),
        "over": probe(told, "over", begin=begins),
    }
    around = around_await("{begins} @ future", "{failed} @ ()", "{over} @ future")
    places = {"enter": (before_early_return("{at_once} @ future"), around)}
    assert insert(Undo(), module.Door, places, probes)

    class Future:
        def __init__(self, name: str) -> None:
            self.name = name

        def __await__(self) -> Any:
            yield self.name

        def __repr__(self) -> str:
            return self.name

    door, one, two = module.Door(), Future("one"), Future("two")
    first, second = door.enter(one), door.enter(two)
    assert (first.send(None), second.send(None)) == ("one", "two")
    with pytest.raises(KeyError):
        first.throw(KeyError("thrown"))
    with pytest.raises(StopIteration, match="later"):
        second.send(None)
    door.open = True
    with pytest.raises(StopIteration, match="at once"):
        door.enter(one).send(None)
    assert told == [
        ("begins", one),
        ("begins", two),
        ("failed", "begins"),
        ("over", "begins", two),
        ("at_once", one),
    ]


def test_each_of_many_frames_has_what_it_has_begun(told: list[Any]) -> None:
    begins: Any = _core.Probe(lambda number: f"begun {number}", keeps=_core.KEEPS_LAST)
    first: Any = _core.Probe(lambda number: f"first {number}", keeps=_core.KEEPS_FIRST)
    over: Any = probe(told, "over", begin=begins)
    over_first: Any = probe(told, "over first", begin=first)

    def frame(number: int) -> Iterator[None]:
        begins @ -number
        begins @ number
        yield
        over_first @ number  # another's
        over @ number
        over @ number  # it is over
        first @ number
        first @ -number
        yield
        over @ number
        over_first @ number

    frames = {number: frame(number) for number in range(500)}
    for each in frames.values():
        next(each)
    order = list(frames)
    random.Random(7).shuffle(order)
    for number in order:
        next(frames[number])
    assert told == [("over", f"begun {number}", number) for number in order]
    told.clear()
    for number in reversed(order):
        assert next(frames[number], "ended") == "ended"
    assert told == [("over first", f"first {number}", number) for number in reversed(order)]


@pytest.mark.parametrize(
    ("function", "place"),
    [
        ("refuse", before_early_return(TEXT)),
        ("refuse", around_await(TEXT, TEXT, TEXT)),
        ("enter", around_loop(TEXT, TEXT, TEXT)),
        ("enter", around_rest(TEXT, TEXT, TEXT)),
        ("enter", before_assignment(TEXT)),
        ("enter", at_end(TEXT)),
    ],
)
def test_a_place_that_is_not_there_leaves_all_functions_alone(
    function: str, place: Place, module: ModuleType, told: list[Any]
) -> None:
    before = module.Door.__init__.__code__
    places = {"__init__": (at_end(TEXT),), function: (place,)}
    assert not insert(Undo(), module.Door, places, {"told": probe(told, "told")})
    assert module.Door.__init__.__code__ is before


def test_a_whole_function_and_what_follows_its_refusal_can_be_enclosed(
    module: ModuleType, told: list[Any]
) -> None:
    outer, inner = (probe(told, name, keeps=_core.KEEPS_LAST) for name in ("outer", "inner"))
    probes = {
        "outer": outer,
        "inner": inner,
        "failed": probe(told, "failed", begin=inner),
        "over": probe(told, "over", begin=inner),
        "left": probe(told, "left", begin=outer),
    }
    rest = around_rest("{inner} @ what", "{failed} @ ()", "{over} @ what")
    assert insert(Undo(), module.Door, {"refuse": (rest,)}, probes)
    door = module.Door()
    assert door.refuse("") is True
    with pytest.raises(ValueError, match="no"):
        door.refuse("no")
    assert told == [("inner", ""), ("over", "inner", "")]
    assert insert(
        Undo(), module.Door, {"__init__": (around_all("{outer} @ 1", "{left} @ 2"),)}, probes
    )
    module.Door()
    assert told[2:] == [("outer", 1), ("left", "outer", 2)]


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace("self.open = True", "self.open = None"),
        SOURCE.replace("raise ValueError(what)", "raise TypeError(what)"),
        "\n" + SOURCE,
        "",
        "def f(:\n" * 40,
    ],
)
def test_a_source_that_is_not_what_runs_is_not_used(
    source: str, module: ModuleType, told: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "doors_under_test.py").write_text(source)
    before = module.Door.refuse.__code__
    assert not insert(
        Undo(), module.Door, {"refuse": (at_start(TEXT),)}, {"told": probe(told, "t")}
    )
    assert module.Door.refuse.__code__ is before


def test_a_function_that_others_have_replaced_is_left_alone(
    module: ModuleType, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"refuse": (at_start("{asked} @ self"),)}
    probes = {"asked": probe(told, "asked")}
    monkeypatch.setattr(module.Door, "refuse", lambda _self, _what: None)
    assert not insert(Undo(), module.Door, places, probes)
