"""Flame graphs of one lock, of one thread, and upside down, against times added up here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from report_case import flagship_trace

from contention_lab.analysis import FlameNode, flame
from contention_lab.report import trace_page

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
