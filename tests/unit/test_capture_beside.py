"""Records kept beside objects: threads that come for one at once must get the same, complete."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.capture.patches.beside import Beside
from contention_lab.capture.patches.process_lock import SemLockPermits
from contention_lab.capture.patches.semaphore import SemaphorePermits

if TYPE_CHECKING:
    from collections.abc import Callable


class Thing:
    """Something that can be referred to weakly."""


class Record(Beside):
    """Does something in the middle of being made, as another thread would."""

    __slots__ = ("complete",)

    def __init__(self, thing: Thing, meanwhile: object = None) -> None:
        super().__init__(thing)
        if callable(meanwhile):
            meanwhile()
        self.complete = True


def test_a_record_can_be_found_only_when_it_is_complete() -> None:
    thing = Thing()
    found: list[object] = []
    record = Record(thing, lambda: found.append(Record.table.get(id(thing))))
    assert found == [None]
    assert Record.table[id(thing)] is record


def test_the_second_thread_to_make_a_record_gets_the_first_ones() -> None:
    thing = Thing()
    first: list[Record] = []
    second = Record(thing, lambda: first.append(Record(thing)))
    assert second is first[0]
    assert Record.table[id(thing)] is second


def test_a_record_goes_with_its_object() -> None:
    thing = Thing()
    key = id(thing)
    Record(thing)
    del thing
    assert key not in Record.table


@pytest.mark.parametrize("gone", [Beside.gone, SemLockPermits.gone, SemaphorePermits.gone])
def test_a_record_goes_also_when_the_names_of_its_module_have_gone(
    gone: Callable[[Any], None],
) -> None:
    assert isinstance(gone, FunctionType)
    record = SimpleNamespace(key=-1, semlock=-1, condition=-1, table={})
    record.table[-1] = record
    at_the_end = FunctionType(gone.__code__, {}, argdefs=gone.__defaults__)

    at_the_end(record)

    assert not record.table
