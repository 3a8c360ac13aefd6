"""Records kept beside objects: threads that come for one at once must get the same, complete."""

from __future__ import annotations

from contention_lab.capture.patches.beside import Beside


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
