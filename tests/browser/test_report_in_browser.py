"""The page in a real browser: every view opens, a frame is found, zoomed and read out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from report_case import CLIENTS, HOSTILE, flagship_trace, sweep_result, sweep_traces

from contention_lab.analysis import FlameNode, flame
from contention_lab.report import sweep_page, trace_page

Opener = Callable[..., Any]
VIEWS = ("victim", "culprit", "pair", "spin", "hold")
CANVAS = "#flame [data-flame=canvas]"
READOUT = "#flame [data-flame=readout]"
DIAGNOSIS = {"verdict": "spin-collapse", "summary": "Threads spin.", "findings": []}
SIZES = [(360, 640), (768, 1024), (1280, 800), (3840, 2160)]


@pytest.fixture(scope="module")
def sweep() -> str:
    return sweep_page(sweep_result(), sweep_traces())


def painted(page: Any) -> int:
    """Number of different colours on the flame graph's canvas."""
    found: int = page.eval_on_selector(
        CANVAS,
        """canvas => {
          const copy = new OffscreenCanvas(canvas.width, canvas.height);
          const context = copy.getContext("2d", {willReadFrequently: true});
          context.drawImage(canvas, 0, 0);
          const {data} = context.getImageData(0, 0, copy.width, copy.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }""",
    )
    return found


def plain(text: str) -> str:
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")


def click_frame(page: Any, row: int, share_from_left: float) -> None:
    """Click into a row of the flame graph, at a share of its width."""
    box = page.locator(CANVAS).bounding_box()
    rows = page.evaluate("Math.round(parseFloat(getComputedStyle(document.body).fontSize) * 1.4)")
    page.locator(CANVAS).click(
        position={"x": box["width"] * share_from_left, "y": rows * (row + 0.5)}
    )


def below(node: FlameNode, name: str) -> FlameNode:
    return next(child for child in node.children if child.name == name)


def test_every_view_opens_and_draws(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)

    for view in VIEWS:
        page.click(f"#tab-{view}")

        assert page.get_attribute(f"#tab-{view}", "aria-selected") == "true"
        assert painted(page) > 4
        assert page.locator(f"#flame p[data-note={view}]").is_visible()


def test_a_known_frame_is_found_with_its_share(open_page: Opener, sweep: str) -> None:
    root = flame(flagship_trace(8), "victim")
    node = root
    for name in ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"):
        node = below(node, name)
    victim = below(below(below(node, "run_batch.<locals>.worker"), "train_one"), "Tensor.backward")
    page = open_page(sweep)

    page.fill("#flame [data-flame=search]", "tensor.BACKWARD")

    found = plain(page.inner_text("#flame [data-flame=matches]"))
    assert found == f"1 frame, {100 * victim.total_ns / root.total_ns:.0f} % of the time"
    page.press("#flame [data-flame=search]", "Escape")
    assert page.inner_text("#flame [data-flame=matches]") == ""


def test_a_click_zooms_and_reads_out_the_frame(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)
    before = page.locator(CANVAS).screenshot()

    click_frame(page, 6, 0.9)

    assert page.inner_text(READOUT).startswith("Tensor.backward (project/autodiff/tensor.py:210)")
    assert page.locator(CANVAS).screenshot() != before
    click_frame(page, 7, 0.02)  # it fills the width now
    assert page.inner_text(READOUT).startswith("GlobalClient.backward")
    page.click("#flame [data-flame=reset]")
    assert page.inner_text(READOUT).startswith("all · ")


def test_the_graph_is_walked_by_keyboard(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)
    page.click("#tab-culprit")
    page.focus(CANVAS)

    told = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter", "Escape", "Home"):
        page.keyboard.press(key)
        told.append(page.inner_text(READOUT).split(" (")[0].split(" · ")[0])

    assert told == [
        "autodiff server", "Thread._bootstrap", "autodiff server", "autodiff server", "all", "all",
    ]  # fmt: skip
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"


def test_neighbours_are_reached_sideways(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)
    page.focus(CANVAS)
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    first = page.inner_text(READOUT)

    page.keyboard.press("ArrowRight")

    assert first.startswith("MLP.forward")
    assert page.inner_text(READOUT).startswith("Tensor.backward")


def test_a_tooltip_follows_the_pointer(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)

    page.locator(CANVAS).hover(position={"x": 40, "y": 30})

    assert page.locator("#flame [data-flame=tooltip]").is_visible()
    assert "Thread._bootstrap" in page.inner_text("#flame [data-flame=tooltip]")


def test_choosing_a_run_changes_every_section(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)
    page.select_option("#point", label="2 threads")

    labels = page.locator("[data-point-label]").all_inner_texts()
    assert set(labels) == {"2 threads"}
    shown = page.locator("#locks details.point:visible")
    assert shown.count() == 1
    assert shown.get_attribute("data-point") == "run-0-2"
    assert painted(page) > 4


def test_a_run_without_waiting_says_so(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)

    page.select_option("#point", label="1 thread")

    assert page.locator("#flame [data-flame=empty]").is_visible()
    assert not page.locator(CANVAS).is_visible()
    page.click("#tab-hold")
    assert page.locator(CANVAS).is_visible()


def test_a_table_sorts_by_a_column_and_back(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)
    table = page.locator("#locks details.point:visible table")

    def names() -> list[str]:
        return [text.split("\n")[0] for text in table.locator("tbody th").all_inner_texts()]

    head = table.locator("thead button", has_text="acquires")
    head.click()
    assert names() == ["autodiff server", "pool:Pool.__init__:9"]
    head.click()
    assert names() == ["pool:Pool.__init__:9", "autodiff server"]
    assert table.locator("th[aria-sort=ascending]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_reader_chooses(
    open_page: Opener, sweep: str, scheme: str
) -> None:
    page = open_page(sweep, color_scheme=scheme)

    def dark() -> bool:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) < 128 * 3

    assert dark() == (scheme == "dark")
    page.click("#theme")
    assert not dark()
    page.click("#theme")
    assert dark()
    page.click("#theme")
    assert dark() == (scheme == "dark")


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_the_page_never_scrolls_sideways(
    open_page: Opener, sweep: str, width: int, height: int, scripts: bool
) -> None:
    page = open_page(sweep, width=width, height=height, java_script_enabled=scripts)

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_there_are_pictures_and_tables(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep, java_script_enabled=False)

    assert page.locator("h1").is_visible()
    assert page.locator("svg.plot:visible").count() == 2
    assert page.locator("#flame details.fallback[open] table.tree:visible").count() == 5
    assert page.locator("#blocks table:visible").count() == 2
    assert page.locator("#order p:visible").count() > 0
    assert not page.locator(CANVAS).is_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_hostile_names_stay_text(open_page: Opener, scripts: bool) -> None:
    result = sweep_result()
    result["scenario"]["title"] = HOSTILE[0]
    result["verdict"]["lines"] = list(HOSTILE)
    traces = {
        ("global-spinlock", n): flagship_trace(n, names=(HOSTILE[n % 6], HOSTILE[(n + 1) % 6]))
        for n in range(2, 8)
    }

    page = open_page(sweep_page(result, traces), java_script_enabled=scripts, width=360)

    assert page.locator("img").count() == 0
    assert page.inner_text("h1") == HOSTILE[0]
    assert HOSTILE[0] in page.title()
    if scripts:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.fill("#flame [data-flame=search]", "onerror")
        for point in page.locator("#point option").all():
            page.select_option("#point", point.get_attribute("value"))
            page.focus(CANVAS)
            for key in ("Home", *["ArrowDown"] * 10, "Enter", "Escape"):
                page.keyboard.press(key)
            page.fill("#flame [data-flame=search]", "onerror")


def test_a_page_of_variants_works(open_page: Opener) -> None:
    variants = tuple(CLIENTS)
    page = open_page(sweep_page(sweep_result(variants), sweep_traces(variants, (1, 4))))

    page.select_option("#point", label="narrow-lock, 4 threads")

    assert set(page.locator("[data-point-label]").all_inner_texts()) == {"narrow-lock, 4 threads"}
    assert painted(page) > 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_page_of_a_trace_works(open_page: Opener) -> None:
    page = open_page(trace_page([flagship_trace(4)], [DIAGNOSIS]), width=360)

    assert page.inner_text("h1") == "Threads spin."
    assert page.locator("#threads svg.plot:visible").count() == 1
    for view in VIEWS:
        page.click(f"#tab-{view}")
        assert painted(page) > 4


def test_a_page_of_several_traces_shows_the_threads_of_the_one_chosen(open_page: Opener) -> None:
    page = open_page(trace_page([flagship_trace(2), flagship_trace(6)], [DIAGNOSIS] * 2))

    page.select_option("#point", label="run-2.clt")

    assert page.locator("#threads svg.plot:visible text", has_text="worker-").count() == 2


def test_the_data_in_the_page_is_what_the_graph_shows(open_page: Opener, sweep: str) -> None:
    page = open_page(sweep)

    data = json.loads(page.inner_text("#data") or page.text_content("#data"))

    whole = data["points"]["run-0-8"]["views"]["victim"]["total"][0]
    assert whole == flame(flagship_trace(8), "victim").total_ns
