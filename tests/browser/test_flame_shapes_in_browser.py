"""Flame graphs of one lock, of one thread, and upside down, against times added up here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from report_case import flagship_trace

from contention_lab.analysis import FlameNode, flame
from contention_lab.report import trace_page
from contention_lab.trace import Trace, TraceBuilder, parse

if TYPE_CHECKING:
    from pathlib import Path

Opener = Callable[..., Any]
DIAGNOSIS = {"verdict": "", "summary": "Threads wait.", "findings": []}
READOUT = "#flame [data-flame=readout]"
THREAD = "#flame-thread"
TURNED = "button[data-flame=inverted]"
WRITTEN_MS = 600
"""After which the address says what is shown."""


@pytest.fixture(scope="module")
def text() -> str:
    return trace_page([flagship_trace(8)], [DIAGNOSIS])


def own_times(node: FlameNode) -> dict[int, int]:
    """Time by thread, of all nodes."""
    found: dict[int, int] = dict(node.by_thread)
    for child in node.children:
        for thread, ns in own_times(child).items():
            found[thread] = found.get(thread, 0) + ns
    return found


def said_seconds(text: str) -> float:
    match = re.search(r"([\d.]+)\s(ns|µs|ms|s)\b", text.replace("\u202f", " "))
    assert match, text
    return float(match[1]) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[match[2]]


@pytest.mark.parametrize("view", ["victim", "culprit", "pair", "hold"])
def test_a_thread_has_its_own_tree(open_page: Opener, text: str, view: str) -> None:
    trace = flagship_trace(8)
    times = own_times(flame(trace, view, by_thread=True))  # type: ignore[arg-type]
    wanted = max(times, key=lambda thread: times[thread] if thread else 0)
    page = open_page(text)
    page.click(f"#tab-{view}")

    label = trace.thread(wanted).label
    options = page.locator(f"{THREAD} option").all_inner_texts()
    assert len(options) == 1 + len(times)
    page.select_option(THREAD, label=next(o for o in options if o.startswith(f"{label},")))

    whole = page.locator(READOUT).inner_text()
    assert said_seconds(whole) == pytest.approx(times[wanted] / 1e9, rel=0.01)
    page.wait_for_timeout(WRITTEN_MS)
    assert "thread=" in page.evaluate("location.hash")


def test_upside_down_starts_at_the_innermost_and_keeps_the_sum(
    open_page: Opener, text: str
) -> None:
    page = open_page(text)
    before = page.locator(READOUT).inner_text()

    page.click(TURNED)

    assert page.get_attribute(TURNED, "aria-pressed") == "true"
    assert page.locator(READOUT).inner_text() == before
    canvas = page.locator("#flame [data-flame=canvas]")
    canvas.focus()
    canvas.press("ArrowDown")
    assert page.locator(READOUT).inner_text().startswith("autodiff server")
    for _ in range(30):
        canvas.press("ArrowDown")
    assert "Thread._bootstrap (" in page.locator(READOUT).inner_text()


def test_the_graph_is_told_in_words(open_page: Opener, text: str) -> None:
    page = open_page(text)
    page.click("#tab-culprit")

    told = page.get_attribute("#flame [data-flame=canvas]", "aria-label")

    assert told.startswith("Flame graph, Waiting: who makes them wait: all")
    assert "The widest way down ends in" in told
    assert told.endswith("in itself.")
    assert "8 threads" in page.get_attribute("[data-timeline=canvas]", "aria-label")


def test_a_lock_that_nobody_waited_for_is_not_offered(open_page: Opener, text: str) -> None:
    page = open_page(text)

    assert page.locator("#flame-lock option").count() == 2
    assert not page.locator("#flame-lock").is_visible()


def test_a_link_keeps_thread_and_side(open_page: Opener, text: str) -> None:
    page = open_page(text, fragment="#flame=pair&thread=1&inverted=1")

    assert page.get_attribute("#tab-pair", "aria-selected") == "true"
    assert page.input_value(THREAD) == "1"
    assert page.get_attribute(TURNED, "aria-pressed") == "true"
    page.click(TURNED)
    page.wait_for_timeout(WRITTEN_MS)
    assert "thread=1" in page.evaluate("location.hash")
    assert "inverted" not in page.evaluate("location.hash")


def test_what_a_link_wants_and_is_not_there_is_not_chosen(open_page: Opener, text: str) -> None:
    page = open_page(text, fragment="#thread=999&lock=nonsense")

    assert page.input_value(THREAD) == ""
    assert page.locator("#flame [data-flame=canvas]").is_visible()


ROWS = """canvas => Math.round(canvas.clientHeight / (1.4 * parseFloat(
  getComputedStyle(document.documentElement).fontSize)))"""
"""Rows that the canvas has room for."""


def deep_speck() -> Trace:
    """One place waits nearly all the time, another for a hundred-thousandth of it, far down."""
    builder = TraceBuilder()
    lock, one, other = builder.add_lock(name="lock"), builder.add_thread(), builder.add_thread()
    wide = builder.add_stack(builder.add_frame("wide", "/a.py", 1))
    frames = [builder.add_frame(f"deep_{i}", "/b.py", i + 1) for i in range(20)]
    deep = builder.add_stack(*frames)
    builder.add_wait(lock, one, 0, 10**9, stack=wide)
    builder.add_wait(lock, other, 0, 10**4, stack=deep)
    return parse(builder.bytes())


def test_no_rows_are_kept_for_what_is_too_narrow_to_be_seen(open_page: Opener) -> None:
    page = open_page(trace_page([deep_speck()], [DIAGNOSIS]))
    canvas = "#flame [data-flame=canvas]"

    assert page.eval_on_selector(canvas, ROWS) == 3  # all, wide, its lock

    page.fill("#flame [data-flame=search]", "deep_0")
    assert page.eval_on_selector(canvas, ROWS) > 20  # what is found is shown
    page.fill("#flame [data-flame=search]", "")
    assert page.eval_on_selector(canvas, ROWS) == 3

    page.focus(canvas)
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert page.locator(READOUT).inner_text().startswith("deep_19")
    assert page.eval_on_selector(canvas, ROWS) > 20  # zoomed, all of it is wide enough


def test_the_place_that_is_read_out_leads_to_its_source(open_page: Opener, tmp_path: Path) -> None:
    file = tmp_path / "catalog.py"
    file.write_text("def get(lock):\n    with lock:\n        return 1\n")
    builder = TraceBuilder(start_unix_ns=4_000_000_000 * 10**9)
    lock, one = builder.add_lock(name="catalog"), builder.add_thread("one")
    stack = builder.add_stack(builder.add_frame("get", str(file), 2, first_line=1))
    builder.add_wait(lock, one, 10, 10**9, stack=stack)
    trace = parse(builder.bytes())
    pages = [open_page(trace_page([trace], [DIAGNOSIS], source=source)) for source in (True, False)]
    for page in pages:
        page.focus("#flame [data-flame=canvas]")
        page.keyboard.press("ArrowDown")

    said = [page.locator(READOUT).inner_text() for page in pages]
    assert said[0] == said[1]
    assert said[0].startswith("get (")
    assert pages[1].locator(f"{READOUT} a").count() == 0
    link = pages[0].locator(f"{READOUT} a")
    assert link.inner_text().endswith("catalog.py:2")
    link.click()
    shown = pages[0].locator("details.excerpt pre")
    assert shown.is_visible()
    assert "with lock:" in shown.inner_text()
