"""Source on a page: only that of the recording, only Python, only as text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contention_lab.report import trace_page
from contention_lab.report.document import SOURCES_LISTED
from contention_lab.report.source_lines import (
    AROUND,
    LONGEST_LINE,
    MOST_CHARACTERS,
    MOST_EXCERPTS,
    source_book,
)
from contention_lab.trace import Frame, Trace, TraceBuilder, parse

PROGRAM = """import threading

class Catalog:
    def get(self, key):
        # </pre><script>alert(1)</script>
        with self.lock:
            return key


def outer():
    return [x for x in range(3)]
"""
LATER_NS = 4_000_000_000 * 10**9
DIAGNOSIS = {"verdict": "", "summary": "Threads wait.", "findings": []}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "catalog.py"
    file.write_text(PROGRAM)
    return file


def frame(file: Path, function: str = "Catalog.get", line: int = 6, first: int = 4) -> Frame:
    return Frame(function, str(file), line, first)


def test_the_lines_around_a_place_are_read_and_it_is_marked(program: Path) -> None:
    (excerpt,) = source_book([(frame(program), LATER_NS)]).excerpts

    assert [line.number for line in excerpt.lines] == list(range(2, 6 + AROUND + 1))
    assert [line.text for line in excerpt.lines if line.is_it] == ["        with self.lock:"]


def test_what_all_lines_are_indented_by_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "deep.py"
    body = "".join(f"        x = {i}\n" for i in range(20))
    file.write_text(f"class A:\n    def f(self):\n{body}")

    (excerpt,) = source_book([(frame(file, "A.f", 10, 2), LATER_NS)]).excerpts

    assert excerpt.lines[0].text == "x = 3"


@pytest.mark.parametrize(
    ("function", "line", "first"),
    [("Catalog.get", 9, 4), ("Catalog.get", 6, 3), ("Catalog.put", 6, 4), ("<module>", 6, 1)],
    ids=["no code there", "starts elsewhere", "another function", "a line of a function"],
)
def test_a_place_that_does_not_match_is_left_out(
    program: Path, function: str, line: int, first: int
) -> None:
    book = source_book([(frame(program, function, line, first), LATER_NS)])

    assert (book.excerpts, book.changed) == ((), 1)


def test_a_file_is_read_once_for_all_its_places(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    as_ever = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or as_ever(path))

    book = source_book([(frame(program), LATER_NS), (frame(program, line=7), LATER_NS)])

    assert (len(book.excerpts), read) == (2, [program])


def test_a_file_written_since_the_recording_is_left_out(program: Path) -> None:
    os.utime(program, ns=(0, 1_001))

    assert source_book([(frame(program), 1_000)]).changed == 1
    assert len(source_book([(frame(program), 1_001)]).excerpts) == 1


def test_only_ordinary_python_files_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(PROGRAM)
    fifo = tmp_path / "pipe.py"
    os.mkfifo(fifo)
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    nul = tmp_path / "nul.py"
    nul.write_bytes(b"x = 1\n\0")
    files = [secret, fifo, broken, nul, tmp_path, tmp_path / "none.py", Path("bad\0name.py")]

    book = source_book([(frame(file), LATER_NS) for file in files])

    assert (book.excerpts, book.absent) == ((), len(files))


def test_a_program_is_not_run_to_read_it(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = tmp_path / "eager.py"
    file.write_text(f"open({str(mark)!r}, 'w')\n")

    assert source_book([(frame(file, "<module>", 1, 1), LATER_NS)]).excerpts
    assert not mark.exists()


def test_there_is_a_limit_to_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("".join(f"x{i} = '{'y' * 500}'\n" for i in range(1, 1000)))
    wanted = [(frame(file, "<module>", line, 1), LATER_NS) for line in range(1, 1000)]

    book = source_book(wanted)

    texts = [line.text for one in book.excerpts for line in one.lines]
    assert len(book.excerpts) <= MOST_EXCERPTS
    assert sum(map(len, texts)) <= MOST_CHARACTERS
    assert book.left_out == len(wanted) - len(book.excerpts)
    assert all(" characters)" in text for text in texts[:4])
    assert all(len(text) < 2 * LONGEST_LINE for text in texts)


def recorded(file: Path) -> Trace:
    builder = TraceBuilder(start_unix_ns=LATER_NS)
    lock = builder.add_lock(name="catalog")
    a, b = builder.add_thread("a"), builder.add_thread("b")
    place = builder.add_frame("Catalog.get", str(file), 6, first_line=4)
    stack = builder.add_stack(place)
    builder.add_hold(lock, a, 0, 100, site=place, stack=stack, waiters=1)
    builder.add_wait(lock, b, 10, 100, stack=stack, holder=a)
    return parse(builder.bytes())


def test_the_page_says_whether_it_holds_source(program: Path) -> None:
    trace = recorded(program)

    with_source = trace_page([trace], [DIAGNOSIS])
    without = trace_page([trace], [DIAGNOSIS], source=False)

    assert "<mark>        with self.lock:</mark>" in with_source
    assert 'lines of the program’s <a href="#source">source code</a>' in with_source
    assert "self.lock" not in without
    assert "holds no source code" in without


def test_source_stays_text(program: Path) -> None:
    page = trace_page([recorded(program)], [DIAGNOSIS])

    assert "<script>alert" not in page
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in page


def test_a_page_without_the_files_says_so(tmp_path: Path) -> None:
    page = trace_page([recorded(tmp_path / "gone.py")], [DIAGNOSIS])

    assert "No source of the program is shown: its files are not here." in page
    assert "holds no source code" in page


def recorded_at_many_places(file: Path, places: int) -> Trace:
    """Return a trace whose lock is held in as many functions of a file, which is written."""
    file.write_text("".join(f"def f{i}():\n    x = {i}\n\n\n" for i in range(places)))
    builder = TraceBuilder(start_unix_ns=LATER_NS)
    lock = builder.add_lock(name="catalog")
    a, b = builder.add_thread("a"), builder.add_thread("b")
    for i in range(places):
        place = builder.add_frame(f"f{i}", str(file), 4 * i + 2, first_line=4 * i + 1)
        stack = builder.add_stack(place)
        builder.add_hold(lock, a, 200 * i, 200 * i + 100, site=place, stack=stack, waiters=1)
        builder.add_wait(lock, b, 200 * i + 10, 200 * i + 100, stack=stack, holder=a)
    return parse(builder.bytes())


def test_a_long_list_of_sources_is_folded_and_its_rest_counted(tmp_path: Path) -> None:
    places = SOURCES_LISTED + 3
    file = tmp_path / "many.py"

    page = trace_page([recorded_at_many_places(file, places)], [DIAGNOSIS])
    short = trace_page([recorded_at_many_places(file, SOURCES_LISTED)], [DIAGNOSIS])

    listed, _, folded = page.partition("<summary>3 more places</summary>")
    assert listed.count('<details class="excerpt"') == SOURCES_LISTED
    assert folded.count('<details class="excerpt"') == 3
    assert "more place" not in short
