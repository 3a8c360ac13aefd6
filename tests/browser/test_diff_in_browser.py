"""The difference flame graph in a real browser: of two sets of recordings, and of two runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from report_case import HOSTILE, flagship_trace, sweep_result, sweep_traces

from contention_lab.comparison import compare
from contention_lab.report import diff_page, sweep_page
from contention_lab.trace import Trace, TraceBuilder, parse

Opener = Callable[..., Any]
CANVAS = "#difference [data-flame=canvas]"
READOUT = "#difference [data-flame=readout]"
MS = 1_000_000
LESS, SAME, MORE = (111, 168, 220), (213, 217, 222), (238, 141, 78)
PIXEL = """(canvas, [x, row]) => {
  const text = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const height = Math.round(text * 1.4) * devicePixelRatio;
  const point = [canvas.width * x, height * (row + 0.6)].map(Math.round);
  const copy = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, -point[0], -point[1]);
  return Array.from(copy.getImageData(0, 0, 1, 1).data.slice(0, 3));
}"""


def recording(**waits_ms: float) -> Trace:
    """Return a recording in which `serve` calls functions that wait for a lock of their own."""
    made = TraceBuilder(duration_ns=900 * MS)
    serve = made.add_frame("serve", "/srv/app.py", 3)
    thread, now = made.add_thread("worker"), 0
    for line, (name, ms) in enumerate(waits_ms.items(), 10):
        stack = made.add_stack(made.add_frame(name, "/srv/app.py", line), serve)
        lock = made.add_lock(name=f"{name}’s lock")
        made.add_wait(lock, thread, now, now + round(ms * MS), stack=stack)
        now += round(ms * MS) + MS
    return parse(made.bytes())


def repeats(**waits_ms: float) -> list[Trace]:
    return [
        recording(**{name: ms * factor for name, ms in waits_ms.items()})
        for factor in (1.0, 1.01, 0.99)
    ]


def page_of(before: list[Trace], after: list[Trace]) -> str:
    return diff_page(before, after, ("v1", "v2"), compare(before, after))


@pytest.fixture(scope="module")
def changed() -> str:
    before = repeats(same=100.0, less=60.0, gone=40.0)
    return page_of(before, repeats(same=100.0, less=12.0, new=80.0))


def plain(text: str) -> str:
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")


def colour_at(page: Any, x: float, row: int) -> tuple[int, ...]:
    return tuple(page.eval_on_selector(CANVAS, PIXEL, [x, row]))


def told(page: Any, name: str) -> str:
    """Find a frame by name with the keyboard and return what is read out of it."""
    page.focus(CANVAS)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    for _ in range(9):
        text = plain(page.inner_text(READOUT))
        if text.startswith(f"{name} "):
            return text
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"{name} was not met")


def test_new_and_gone_frames_have_their_colour_and_their_words(
    open_page: Opener, changed: str
) -> None:
    page = open_page(changed, color_scheme="light")

    # Widths in ms, the larger side of each, the widest first: same 100, new 80, less 60, gone 40.
    assert colour_at(page, 0.2, 2) == SAME
    assert colour_at(page, 0.55, 2) == MORE
    assert colour_at(page, 0.95, 2) == LESS
    red, _, blue = colour_at(page, 0.78, 2)
    assert blue > red
    assert told(page, "same").endswith("no difference")
    assert "0 s before, 80.0 ms after: +80.0 ms" in told(page, "new")
    assert told(page, "new").endswith("new")
    assert "40.0 ms before, 0 s after: −40.0 ms (−100 %)" in told(page, "gone")
    less = told(page, "less")
    assert "60.0 ms before, 12.0 ms after: −48.0 ms (−80 %) · −" in less
    assert less.endswith("less")
    named = page.locator("#difference .named:visible li").all_inner_texts()
    assert [plain(one) for one in named] == [
        "new srv/app.py:12, called by serve, 80.0 ms, with 1 frame below it",
        "gone srv/app.py:12, called by serve, 40.0 ms, with 1 frame below it",
    ]


def test_without_difference_nothing_is_coloured(open_page: Opener) -> None:
    sides = repeats(one=50.0, two=20.0)
    page = open_page(page_of(sides, sides), color_scheme="light")

    assert "No difference in waiting for locks" in page.inner_text("h1")
    assert {colour_at(page, x / 10 + 0.05, row) for x in range(10) for row in range(3)} == {SAME}


def test_search_tells_the_time_on_both_sides(open_page: Opener, changed: str) -> None:
    page = open_page(changed)

    page.fill("#difference-search", "less")

    found = plain(page.inner_text("#difference [data-flame=matches]"))
    assert found == "2 frames, 60.0 ms before, 12.0 ms after"


def test_the_address_keeps_view_frame_and_search(open_page: Opener, changed: str) -> None:
    page = open_page(
        changed, fragment="#difference-flame=culprit&difference-frame=1&difference-search=app"
    )

    assert page.get_attribute("#difference-tab-culprit", "aria-selected") == "true"
    assert page.input_value("#difference-search") == "app"
    page.click("#difference-tab-victim")
    page.wait_for_timeout(300)
    assert page.evaluate("location.hash") == "#difference-search=app"


def test_two_thread_counts_of_a_sweep_are_compared(open_page: Opener) -> None:
    page = open_page(sweep_page(sweep_result(), sweep_traces(threads=(1, 2, 4, 8))))
    two, eight = (
        sum(int((w["end_ns"] - w["start_ns"] - w["gil_ns"]).sum()) for w in [trace.waits])
        for trace in (flagship_trace(2), flagship_trace(8))
    )

    assert page.input_value("#difference-before").endswith("-2")
    assert page.input_value("#difference-after").endswith("-8")
    first = plain(page.inner_text(READOUT))
    before, after = re.match(r"all · ([\d.]+) ms before, ([\d.]+) s after", first).groups()
    assert float(before) == pytest.approx(two / 1e6, rel=0.01)
    assert float(after) == pytest.approx(eight / 1e9, rel=0.01)
    page.select_option("#difference-before", label="8 threads")
    assert plain(page.inner_text(READOUT)).endswith("+0 s · no difference")
    page.select_option("#difference-after", label="1 thread")
    assert plain(page.inner_text(READOUT)).endswith("(−100 %) · gone")
    page.wait_for_timeout(300)
    assert "difference-after=run-0-1" in page.evaluate("location.hash")
    assert page.locator("#difference .in-words:visible").count() == 0


def test_without_scripts_the_words_and_tables_stay(open_page: Opener, changed: str) -> None:
    page = open_page(changed, java_script_enabled=False)

    assert not page.locator(CANVAS).is_visible()
    row = page.locator("#difference table.tree tbody tr", has_text="less › less’s lock").first
    text = re.sub(r"\s+", " ", plain(row.inner_text()))
    assert text.startswith("less › less’s lock srv/app.py:11 60.0 ms 12.0 ms −48.0 ms (−80 %) −")
    assert text.endswith("▼ less")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(360, 640), (1280, 800), (3840, 2160)])
def test_it_fits_every_window_in_both_themes(
    open_page: Opener, changed: str, scheme: str, width: int, height: int
) -> None:
    page = open_page(changed, width=width, height=height, color_scheme=scheme)

    for tab in page.locator("#difference [role=tab]").all():
        tab.click()

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_hostile_names_stay_text(open_page: Opener, at: int) -> None:
    names = (HOSTILE[at], HOSTILE[(at + 1) % len(HOSTILE)])
    before, after = [flagship_trace(2)], [flagship_trace(2, names=names)]
    page = open_page(
        diff_page(before, after, (HOSTILE[at], "x"), compare(before, after)), width=360
    )

    page.focus(CANVAS)
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.locator(CANVAS).hover(position={"x": 200, "y": 90})

    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
