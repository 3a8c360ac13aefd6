"""Cells of a notebook: called what people call them, with their text where a recording has it."""

from __future__ import annotations

from typing import Any

import pytest

from contention_lab.report import trace_page
from contention_lab.trace import Trace, TraceBuilder, parse
from contention_lab.trace.cells import cell_names, cell_texts

TEXT = "# first\nlock = Lock()\ndef held():\n    with lock:\n        work()\nawait held()\n"
DIAGNOSIS = {"verdict": "", "summary": "Threads wait.", "findings": []}


def cell(file: str, name: str = "In [3]", text: str = TEXT) -> dict[str, str]:
    return {"file": file, "name": name, "text": text}


def recorded(*cells: Any) -> Trace:
    """Return a trace in which a function of a cell of the file `<input-3>` holds a lock."""
    builder = TraceBuilder(meta={"cells": list(cells)})
    a, b = builder.add_thread("a"), builder.add_thread("b")
    site = builder.add_frame("<module>", "<input-3>", 2, first_line=1)
    lock = builder.add_lock(site=site)
    place = builder.add_frame("held", "<input-3>", 4, first_line=3)
    stack = builder.add_stack(place)
    builder.add_hold(lock, a, 0, 100, site=place, stack=stack, waiters=1)
    builder.add_wait(lock, b, 10, 100, stack=stack, holder=a)
    return parse(builder.bytes())


def test_code_of_a_cell_is_in_the_cell_that_people_know() -> None:
    trace = recorded(cell("<input-3>"), cell("<input-1>", "In [1]", ""))

    assert {frame.filename for frame in trace.frames.values()} == {"In [3]"}
    (lock,) = trace.locks.values()
    assert lock.label == "In [3]:<module>:2"


def test_a_page_shows_the_source_of_a_cell_unless_it_is_not_to() -> None:
    trace = recorded(cell("<input-3>"))

    page = trace_page([trace], [DIAGNOSIS])

    assert "<mark>    with lock:</mark>" in page
    assert "In [3]:4" in page
    assert "with lock" not in trace_page([trace], [DIAGNOSIS], source=False)


def test_a_text_that_is_not_that_of_the_code_is_not_shown() -> None:
    text = "def other():\n    return None\n"

    page = trace_page([recorded(cell("<input-3>", text=text))], [DIAGNOSIS])

    assert "def other" not in page


def test_cells_of_two_kernels_with_one_name_have_no_text() -> None:
    same = {"cells": [cell("<input-3>")]}
    other = {"cells": [cell("<input-9>", text="y = 2\n"), cell("<input-1>", "In [1]", "z = 3\n")]}

    assert cell_texts([same, same]) == {"In [3]": TEXT}
    assert cell_texts([same, other]) == {"In [1]": "z = 3\n"}


@pytest.mark.parametrize("cells", [None, 3, "cells", {"file": "a"}, [1, None, [], {"file": "a"}]])
def test_metadata_that_is_nonsense_names_nothing(cells: Any) -> None:
    assert cell_names({"cells": cells}) == {}
    assert cell_texts([{"cells": cells}, {}]) == {}
    assert cell_names({"cells": [{"file": 3, "name": "In [1]"}]}) == {}
