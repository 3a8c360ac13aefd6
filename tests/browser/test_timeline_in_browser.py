"""The timeline in a real browser: a wait is found, chosen, read out, and left for its holder."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from report_case import HOSTILE, chained_trace, flagship_trace, sweep_result, sweep_traces

from contention_lab.analysis import blame
from contention_lab.report import sweep_page, trace_page
from contention_lab.report.timeline import timeline

Opener = Callable[..., Any]
CANVAS = "[data-timeline=canvas]"
READOUT = "[data-timeline=readout]"
DIAGNOSIS = {"verdict": "serialised-by-lock", "summary": "They take turns.", "findings": []}
COLOURS = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const {data} = context.getImageData(0, 0, copy.width, copy.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


@pytest.fixture(scope="module")
def flagship() -> str:
    return trace_page([flagship_trace(4)], [DIAGNOSIS])


@pytest.fixture(scope="module")
def chained() -> str:
    return trace_page([chained_trace()], [DIAGNOSIS])


def plain(text: str) -> str:
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")


def press(page: Any, *keys: str) -> str:
    """Press keys on the timeline; return what is read out then."""
    page.focus(CANVAS)
    for key in keys:
        page.keyboard.press(key)
    return plain(page.inner_text(READOUT))


def hash_of(page: Any) -> str:
    """The address's hash, once it has settled."""
    page.wait_for_timeout(300)
    found: str = page.evaluate("location.hash")
    return found


def test_it_draws_rows_and_lanes(open_page: Opener, flagship: str) -> None:
    page = open_page(flagship)

    assert page.eval_on_selector(CANVAS, COLOURS) > 8
    assert "Timeline" in page.inner_text("nav")


def test_the_longest_wait_is_read_out_with_lock_place_and_holder(
    open_page: Opener, flagship: str
) -> None:
    trace = flagship_trace(4)
    worst = timeline(trace, blame(trace)).worst[0]
    page = open_page(flagship)

    told = press(page, "w")

    assert told.startswith(f"{worst.thread.name} waited ")
    assert f"for “autodiff server” at {worst.start_ns / 1e6:.3f} ms, in GlobalClient." in told
    holder = worst.context.holder
    assert holder is not None
    assert f"{holder.name} had it longest, taken in GlobalClient.backward (" in told
    stacks = page.locator("[data-timeline=stacks] ol")
    assert stacks.count() == 2
    assert "Thread._bootstrap" in stacks.nth(1).inner_text()


def test_a_click_chooses_what_is_under_the_pointer(open_page: Opener, chained: str) -> None:
    page = open_page(chained)
    press(page, "w", "Escape")
    row = page.evaluate("Math.round(parseFloat(getComputedStyle(document.body).fontSize) * 1.75)")
    box = page.locator(CANVAS).bounding_box()

    # `front` waits from 10 to 95.5 of 300 µs in the first of three rows, which are the last ones.
    page.locator(CANVAS).click(position={"x": box["width"] * 0.3, "y": box["height"] - 2.5 * row})

    assert plain(page.inner_text(READOUT)).startswith("front waited 85.5 µs for “outer”")
    assert hash_of(page) == "#wait=0"


def test_keys_lead_to_the_holder_and_to_the_root_of_the_chain(
    open_page: Opener, chained: str
) -> None:
    page = open_page(chained)

    assert press(page, "w").startswith("front waited 85.5 µs for “outer”")
    assert press(page, "h").startswith("middle held “outer” for 90.0 µs")
    press(page, "w")
    told = press(page, "r")
    assert told.startswith("Root, 1 wait further: back held “inner” for 89.0 µs")
    assert told.endswith("its thread waited for no other lock meanwhile")


def test_brackets_walk_from_wait_to_wait(open_page: Opener, chained: str) -> None:
    page = open_page(chained)

    assert press(page, "]").startswith("middle waited")
    assert press(page, "]").startswith("front waited")
    assert press(page, "]") == "No later wait for a lock."
    assert press(page, "[").startswith("middle waited")
    assert press(page, "[") == "No earlier wait for a lock."


def test_brackets_reach_every_wait_once(open_page: Opener, flagship: str) -> None:
    page = open_page(flagship)
    waits = len(flagship_trace(4).waits)

    told = []
    while not (last := press(page, "]")).startswith("No later"):
        told.append(last)

    assert len(told) == len(set(told)) == waits


def test_it_zooms_to_a_microsecond_and_back(open_page: Opener, flagship: str) -> None:
    page = open_page(flagship)
    length = flagship_trace(4).duration_ns

    press(page, *["+"] * 40)
    match = re.fullmatch(r"#timeline=(\d+)-(\d+)", hash_of(page))
    assert match is not None
    start, end = map(int, match.groups())
    assert end - start == pytest.approx(1000, abs=1)
    assert (start + end) / 2 == pytest.approx(length / 2, rel=0.01)
    press(page, "ArrowRight")
    assert hash_of(page) == f"#timeline={start + 150}-{end + 150}"
    press(page, "0")
    assert hash_of(page) == ""


def test_dragging_pans_and_the_wheel_zooms(open_page: Opener, flagship: str) -> None:
    page = open_page(flagship)
    press(page, "+", "+")
    before = hash_of(page)
    box = page.locator(CANVAS).bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 100, middle[1], steps=4)
    page.mouse.up()
    panned = hash_of(page)
    page.mouse.wheel(0, -300)

    starts = [int(re.findall(r"\d+", text)[0]) for text in (before, panned)]
    assert starts[1] > starts[0]
    spans = [b - a for a, b in (map(int, re.findall(r"\d+", x)) for x in (panned, hash_of(page)))]
    assert spans[1] < spans[0]


def test_rows_are_walked_and_enter_chooses_in_the_row(open_page: Opener, chained: str) -> None:
    page = open_page(chained)

    assert press(page, "ArrowDown").startswith("middle · ")
    assert press(page, "Enter").startswith("middle waited 84.5 µs for “inner”")
    assert press(page, "ArrowDown", "Enter") == "back waits for no lock in this part."


def test_buttons_do_what_keys_do(open_page: Opener, chained: str) -> None:
    page = open_page(chained)
    assert page.locator("button[data-key=h]").is_disabled()

    page.click("button[data-key=w]")
    page.click("button[data-key=h]")

    assert page.inner_text(READOUT).startswith("middle held")


def test_the_address_restores_the_view(open_page: Opener) -> None:
    text = sweep_page(sweep_result(), sweep_traces())
    page = open_page(text)
    page.select_option("#point", label="2 threads")
    press(page, "w", "+")
    page.click("#tab-hold")
    page.fill("[data-flame=search]", "back ward&=#")
    told, address = page.inner_text(READOUT), hash_of(page)
    assert re.fullmatch(
        r"#run=run-0-2&timeline=\d+-\d+&wait=\d+&flame=hold&search=back%20ward%26%3D%23", address
    )

    page = open_page(text, fragment=address)

    assert page.locator("#point").input_value() == "run-0-2"
    assert page.inner_text(READOUT) == told
    assert page.get_attribute("#tab-hold", "aria-selected") == "true"
    assert page.input_value("[data-flame=search]") == "back ward&=#"
    assert hash_of(page) == address


@pytest.mark.parametrize(
    "address",
    [
        "#timeline=9-1&wait=-5&flame=nothing&frame=1e9",
        "#timeline=1-99999999999999999999&wait=999999999&run=__proto__",
        "#wait=%E0%A4%A&search=%3Cimg%20src=x%20onerror=alert(1)%3E",
        "#flame",
    ],
)
def test_addresses_that_make_no_sense_are_ignored(
    open_page: Opener, flagship: str, address: str
) -> None:
    page = open_page(flagship)

    page.evaluate("hash => { location.hash = hash; }", address)
    page.wait_for_timeout(50)

    assert page.inner_text(READOUT).startswith("Click a wait")
    assert page.locator("img").count() == 0
    assert press(page, "w").startswith("worker-")


def test_a_link_of_the_table_leads_to_its_wait(open_page: Opener, flagship: str) -> None:
    page = open_page(flagship)
    page.click("#timeline details.fallback summary >> nth=0")
    row = page.locator("#timeline table tbody tr").nth(2)
    thread = row.locator("td").nth(2).inner_text().split("\n")[0]

    row.locator("a").click()

    assert page.inner_text(READOUT).startswith(f"{thread} waited")


def test_without_scripts_a_sentence_and_a_table_tell_the_longest_waits(
    open_page: Opener, chained: str
) -> None:
    page = open_page(chained, java_script_enabled=False)

    assert not page.locator(CANVAS).is_visible()
    assert "2 waits for locks" in page.inner_text("#timeline")
    first = page.locator("#timeline table tbody tr").nth(0)
    assert re.sub(r"\s+", " ", plain(first.inner_text())) == (
        "10.0 µs 85.5 µs outer an unknown place front ask srv/app.py:1 middle nest srv/app.py:2"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(360, 640), (3840, 2160)])
def test_it_works_in_both_themes_from_phones_to_the_widest_screens(
    open_page: Opener, flagship: str, scheme: str, width: int, height: int
) -> None:
    page = open_page(flagship, width=width, height=height, color_scheme=scheme)

    assert press(page, "w", "+", "+").startswith("worker-")
    assert page.eval_on_selector(CANVAS, COLOURS) > 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_print_shows_a_picture(open_page: Opener, flagship: str) -> None:
    page = open_page(flagship, color_scheme="dark")

    page.emulate_media(media="print")

    assert page.locator(CANVAS).is_visible()
    assert not page.locator("button[data-key=w]").is_visible()
    corner = page.eval_on_selector(
        CANVAS, "canvas => Array.from(canvas.getContext('2d').getImageData(1, 1, 1, 1).data)"
    )
    assert corner == [0, 0, 0, 0]


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_hostile_names_stay_text(open_page: Opener, at: int) -> None:
    names = (HOSTILE[at], HOSTILE[(at + 1) % len(HOSTILE)])
    page = open_page(trace_page([flagship_trace(3, names=names)], [DIAGNOSIS]), width=360)

    press(page, "w", "h", "r", "]", "+", "+", "+", "+", "+", "+")
    page.locator(CANVAS).hover(position={"x": 200, "y": 90})

    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_run_without_records_says_so(open_page: Opener) -> None:
    page = open_page(sweep_page(sweep_result(), sweep_traces()))

    page.select_option("#point", label="1 thread")

    assert press(page, "]") == "No later wait for a lock."
