"""Locks are called what the source calls them, or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from contention_lab.trace import TraceBuilder, load

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
import threading
lock = threading.Lock()
class Catalog:
    shared = threading.Lock()
    def __init__(self, given=None):
        self._lock = threading.Lock()
        self._given = given or threading.RLock()
        self._shards = [threading.Lock() for _ in range(4)]
        self._by_key = {}
        self._lazy: threading.Lock = (
            threading.Lock()
        )
    def of(self, key):
        return self._by_key.setdefault(key, threading.Lock())
    def many(self, key):
        self._by_key[key] = threading.Lock()
        a, b = threading.Lock(), threading.Lock()
        one = threading.Lock(); two = threading.Lock()
        return threading.Lock()
def build():
    local = threading.Condition()
    for name in "ab":
        names[name] = {"x": threading.Lock()}
"""


@pytest.mark.parametrize(
    ("line", "function", "label"),
    [
        (2, "<module>", "app.lock"),
        (4, "Catalog", "Catalog.shared"),
        (6, "Catalog.__init__", "Catalog._lock"),
        (7, "Catalog.__init__", "Catalog._given"),
        (8, "Catalog.__init__.<locals>.<listcomp>", "Catalog._shards[...]"),
        (11, "Catalog.__init__", "Catalog._lazy"),
        (14, "Catalog.of", "Catalog._by_key[...]"),
        (16, "Catalog.many", "Catalog._by_key[...]"),
        (17, "Catalog.many", "app:Catalog.many:17"),
        (18, "Catalog.many", "app:Catalog.many:18"),
        (19, "Catalog.many", "app:Catalog.many:19"),
        (21, "build", "build.local"),
        (23, "build", "build.names[...]"),
        (99, "build", "app:build:99"),
    ],
)
def test_a_lock_is_called_after_what_it_is_assigned_to(
    tmp_path: Path, line: int, function: str, label: str
) -> None:
    assert _label(tmp_path, SOURCE, line, function) == label


def test_a_given_name_comes_first(tmp_path: Path) -> None:
    assert _label(tmp_path, SOURCE, 2, "<module>", name="ledger") == "ledger"


def test_the_systems_name_of_a_lock_of_processes_comes_last(tmp_path: Path) -> None:
    kind = "multiprocessing.Lock"
    assert _label(tmp_path, SOURCE, 2, "<module>", name="/mp-1", kind=kind) == "app.lock"
    assert _label(tmp_path, SOURCE, 99, "build", name="/mp-1", kind=kind) == "app:build:99"


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("multiprocessing.Lock", "app.lock"),
        ("threading.Lock in Thread", "app.other"),
        ("threading.Lock in Event", "app:<module>:1"),
    ],
)
def test_of_several_calls_that_which_makes_the_type_names_it(
    tmp_path: Path, kind: str, label: str
) -> None:
    source = 'ctx = get("fork"); lock = ctx.Lock(); other = Thread()\n'
    assert _label(tmp_path, source, 1, "<module>", kind=kind) == label


def test_the_programs_own_variables_go_without_its_name(tmp_path: Path) -> None:
    assert _label(tmp_path, SOURCE, 2, "<module>", program="/src/app.py") == "lock"
    assert _label(tmp_path, SOURCE, 2, "<module>", program="/src/main.py") == "app.lock"
    assert _label(tmp_path, SOURCE, 6, "Catalog.__init__", program="app.py") == "Catalog._lock"


def test_a_source_changed_since_the_recording_is_not_read(tmp_path: Path) -> None:
    assert _label(tmp_path, SOURCE, 2, "<module>", recorded_ns=999) == "app:<module>:2"


@pytest.mark.parametrize("source", ["lock = (", "lock = threading.Lock()\0", "(" * 5000])
def test_a_source_that_is_no_python_gives_no_names(tmp_path: Path, source: str) -> None:
    assert _label(tmp_path, source, 1, "<module>") == "app:<module>:1"


def test_a_source_that_is_gone_gives_no_names(tmp_path: Path) -> None:
    assert _label(tmp_path, None, 2, "<module>") == "app:<module>:2"


def _label(
    folder: Path,
    source: str | None,
    line: int,
    function: str,
    *,
    name: str = "",
    kind: str = "threading.Lock",
    recorded_ns: int = 2000,
    program: str = "",
) -> str:
    path = folder / "app.py"
    if source is not None:
        path.write_text(source, encoding="utf-8")
        os.utime(path, ns=(1000, 1000))
    builder = TraceBuilder(start_unix_ns=recorded_ns, meta={"program": program})
    frame = builder.add_frame(function, str(path), line)
    lock = builder.add_lock(kind, name=name, site=frame)
    builder.write(folder / "app.clt")
    return load(folder / "app.clt").locks[lock].label


FIELDS = """\
import dataclasses, threading
@dataclasses.dataclass
class Session:
    token: int = 0
    tries: list = dataclasses.field(default_factory=list)
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
@dataclasses.dataclass
class Pair:
    one: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    two: threading.Lock = dataclasses.field(default_factory=threading.Lock)
def main():
    session = Session()
    pair = Pair()
    use(Session())
"""


@pytest.mark.parametrize(
    ("line", "label"), [(12, "Session.lock"), (13, "main.pair"), (14, "Session.lock")]
)
def test_a_lock_of_a_dataclass_is_called_after_the_field(
    tmp_path: Path, line: int, label: str
) -> None:
    assert _label(tmp_path, FIELDS, line, "main") == label


TOGETHER = """\
import threading
small, big = threading.Lock(), threading.Lock()
both = [threading.Lock(), threading.Lock()]
first, *rest = threading.Lock(), threading.Lock()
"""


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        (2, ["app.small", "app.big"]),
        (3, ["app.both[...]", "app.both[...]"]),
        (4, ["app:<module>:4", "app:<module>:4#2"]),  # one of them is named, but which?
    ],
)
def test_locks_made_on_one_line_are_told_apart(
    tmp_path: Path, line: int, labels: list[str]
) -> None:
    path = tmp_path / "app.py"
    path.write_text(TOGETHER, encoding="utf-8")
    os.utime(path, ns=(1000, 1000))
    builder = TraceBuilder(start_unix_ns=2000)
    for at in (40, 12, 40):  # the order of calls, not that of making, is the source's
        frame = builder.add_frame("<module>", str(path), line, first_line=1, at=at)
        builder.add_lock("threading.Lock", site=frame)
    builder.write(tmp_path / "app.clt")

    locks = load(tmp_path / "app.clt").locks

    assert [locks[number].label for number in (2, 1)] == labels
    assert [locks[number].instance for number in (1, 2, 3)] == [1, 1, 2]
