"""axe-core finds no violation on any page, in any of its views, in both themes.

All of its rules count, the best practices among them: contrast, names of controls, roles, headings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from report_case import CLIENTS, chained_trace, flagship_trace, sweep_result, sweep_traces
from test_report_layer_sections import scene

from contention_lab.comparison import Condition, compare
from contention_lab.diagnosis import diagnose
from contention_lab.report import diff_page, sweep_page, trace_page
from contention_lab.trace import Level, Trace, TraceBuilder, parse

Opener = Callable[..., Any]
axe = pytest.importorskip(
    "axe_playwright_python.base", reason="axe is not installed: pip install axe-playwright-python"
)
OPEN_ALL = "for (const part of document.querySelectorAll('details')) part.open = true"
FOUND = """async () => (await axe.run()).violations.map(({id, help, nodes}) =>
  `${id}: ${help}: ${nodes.map(({html}) => html.slice(0, 200)).slice(0, 3).join(" and ")}`)"""


def native_program() -> Trace:
    """A program that is not Python, with one lock that a thread waits for."""
    python = {"implementation": "", "version": "", "gil": False}
    made = TraceBuilder(meta={"python": python, "native_layer": True, "program": "a.out"})
    lock = made.add_lock("pthread_mutex_t", name="table")
    stack = made.add_stack(made.add_frame("lookup", "/src/table.c", 12))
    made.add_wait(lock, made.add_thread("a.out"), 0, 5_000_000, stack=stack)
    return parse(made.bytes())


def healthy() -> Trace:
    made = TraceBuilder(duration_ns=10**9)
    made.add_counter(made.add_lock(name="quiet"), made.add_thread("one"), acquires=9, hold_ns=10**5)
    return parse(made.bytes())


def only_counters() -> Trace:
    made = TraceBuilder(level=Level.COUNTERS, duration_ns=10**9)
    made.add_counter(
        made.add_lock(name="busy"), made.add_thread("one"), acquires=9, contended=5, wait_ns=10**8
    )
    return parse(made.bytes())


def of_traces(*traces: Trace) -> str:
    return trace_page(traces, [diagnose(trace).to_json() for trace in traces])


def of_sides(before: list[Trace], after: list[Trace], *limits: str) -> str:
    comparison = compare(before, after)
    outcomes = [Condition.parse(limit).check(comparison) for limit in limits]
    return diff_page(before, after, ("before", "after"), comparison, outcomes)


def repeats(threads: int) -> list[Trace]:
    return [flagship_trace(threads, steps) for steps in (11, 12, 13)]


def doubtful_sweep() -> str:
    doubts = {"complete": False, "missing": [f"run {at}" for at in range(9)]}
    return sweep_page(sweep_result() | doubts, {})


PAGES: dict[str, Callable[[], str]] = {
    "sweep": lambda: sweep_page(sweep_result(), sweep_traces()),
    "variants": lambda: sweep_page(
        sweep_result(tuple(CLIENTS)), sweep_traces(("global-spinlock", "channel"), (2, 8))
    ),
    "doubtful sweep": doubtful_sweep,
    "trace": lambda: of_traces(flagship_trace()),
    "two traces": lambda: of_traces(flagship_trace(4), flagship_trace(8)),
    "chain": lambda: of_traces(chained_trace()),
    "GIL and native lock": lambda: of_traces(scene()),
    "native program": lambda: of_traces(native_program()),
    "healthy": lambda: of_traces(healthy()),
    "counters": lambda: of_traces(only_counters()),
    "empty": lambda: of_traces(parse(TraceBuilder().bytes())),
    "difference": lambda: of_sides(repeats(4), repeats(8), "wait>+20%", "wall>9s"),
    "no difference": lambda: of_sides(repeats(4), repeats(4)),
    "difference without repeats": lambda: of_sides([chained_trace()], [flagship_trace(3)]),
    "difference of nothing": lambda: of_sides([healthy()], [healthy()]),
}


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_axe_finds_no_violation(open_page: Opener, made: Callable[[], str]) -> None:
    page = open_page(made(), color_scheme="light")
    page.evaluate(axe.AXE_SCRIPT)

    assert page.evaluate(FOUND) == []
    page.evaluate(OPEN_ALL)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(FOUND) == [], scheme


@pytest.mark.parametrize("view", ["victim", "culprit", "spin", "hold"])
@pytest.mark.parametrize("name", ["trace", "difference"])
def test_axe_finds_no_violation_in_any_view_searched_and_chosen(
    open_page: Opener, name: str, view: str
) -> None:
    section = "#difference" if name == "difference" else "#flame"
    page = open_page(PAGES[name](), color_scheme="dark", width=360, height=640)
    page.evaluate(axe.AXE_SCRIPT)

    page.click(f"{section} [data-view={view}]")
    page.fill(f"{section} [data-flame=search]", "backward")
    page.locator(f"{section} [data-flame=canvas]").hover(position={"x": 60, "y": 30})
    if name == "trace":
        page.focus("[data-timeline=canvas]")
        page.keyboard.press("w")

    assert page.evaluate(FOUND) == []


def test_axe_would_find_one(open_page: Opener) -> None:
    page = open_page(of_traces(healthy()))
    page.evaluate(axe.AXE_SCRIPT)

    page.evaluate("document.querySelector('#main').append(document.createElement('button'))")

    assert [line.split(":")[0] for line in page.evaluate(FOUND)] == ["button-name"]
