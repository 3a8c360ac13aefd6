"""Locks made by code that is in no file: they are their caller's."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import contention_lab as cl

if TYPE_CHECKING:
    from pathlib import Path


def test_a_lock_of_a_dataclass_is_made_where_the_object_is(tmp_path: Path) -> None:
    with cl.record(tmp_path / "run.clt"):

        @dataclasses.dataclass
        class Session:
            lock: Any = dataclasses.field(default_factory=threading.Lock)

        def make() -> Session:
            return Session()

        with make().lock:
            pass
        text: dict[str, Any] = {}
        exec("import threading\ndef inner(): return threading.Lock()", text)
        with text["inner"]():
            pass
    locks = [one for one in cl.load(tmp_path / "run.clt").locks.values() if one.site]
    mine = [one for one in locks if one.site and one.site.filename == __file__]

    assert [one.label for one in mine][:1] == ["Session.lock"]
    assert [one.site.function for one in mine if one.site] == [
        "test_a_lock_of_a_dataclass_is_made_where_the_object_is.<locals>.make",
        "test_a_lock_of_a_dataclass_is_made_where_the_object_is",
    ]
