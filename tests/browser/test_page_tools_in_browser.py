"""What a reader takes from a page: rows that are filtered and sorted, text and pictures."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from report_case import HOSTILE, flagship_trace

from contention_lab.report import trace_page

if TYPE_CHECKING:
    from pathlib import Path

Opener = Callable[..., Any]
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def text() -> str:
    diagnosis = {"verdict": "spin-collapse", "summary": "Threads `spin`.", "findings": []}
    return trace_page([flagship_trace(8, names=(HOSTILE[0],))], [diagnosis])


def visible_rows(page: Any, table: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        f"{table} tbody tr:not([hidden])", "rows => rows.map(row => row.innerText)"
    )
    return found


def saved(page: Any, label: str, folder: Path) -> bytes:
    with page.expect_download() as download:
        page.click(f"button[aria-label='{label}']")
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file.read_bytes()


def test_rows_are_filtered_by_all_words_and_come_back(open_page: Opener, text: str) -> None:
    page = open_page(text)
    matrix = "#blocks .point:not([hidden]) .scroll >> nth=1"
    rows = page.locator(matrix).locator("tbody tr:visible")
    whole = rows.count()
    name = rows.nth(1).locator("th").inner_text()
    field = page.locator("#blocks input[type=search]").last

    field.fill(f"{name[:4]} {name[-2:]}".upper())

    assert 0 < rows.count() < whole
    assert page.locator("#blocks output").last.inner_text() == f"{rows.count()} of {whole} rows"
    field.press("Escape")
    assert rows.count() == whole


def test_a_matrix_is_sorted_by_a_column(open_page: Opener, text: str) -> None:
    page = open_page(text)
    region = page.locator("#blocks .scroll").nth(1)

    region.locator("thead th button").nth(1).click()

    column = "rows => rows.map(row => Number(row.cells[1].dataset.value))"
    times = region.locator("tbody tr").evaluate_all(column)
    assert times == sorted(times, reverse=True)
    assert len(set(times)) > 1


def test_the_verdict_and_a_table_are_copied_as_text(open_page: Opener, text: str) -> None:
    page = open_page(text, **CLIPBOARD)

    page.click("button[aria-label='Copy the verdict as text']")
    page.wait_for_selector("button:has-text('Copied')")
    verdict = page.evaluate("navigator.clipboard.readText()")
    page.click("button[aria-label='Copy as text: Table of locks']")
    page.wait_for_selector("#locks button:has-text('Copied')")
    table = page.evaluate("navigator.clipboard.readText()").splitlines()

    assert "Threads spin." in verdict
    assert "Copy" not in verdict
    assert table[0].split("\t")[:3] == ["lock", "acquires", "contended"]
    assert {len(line.split("\t")) for line in table} == {14}
    assert len(table) == 1 + len(visible_rows(page, "#locks"))


@pytest.mark.parametrize("plot", ["Timeline", "Flame graph", "Thread time by state"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_plot_is_saved_as_svg_and_png(
    open_page: Opener, text: str, tmp_path: Path, plot: str, scheme: str
) -> None:
    page = open_page(text, color_scheme=scheme)

    svg = ElementTree.fromstring(saved(page, f"Save as SVG: {plot}", tmp_path))
    png = saved(page, f"Save as PNG: {plot}", tmp_path)

    colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--page')")
    assert svg.tag == f"{SVG}svg"
    assert svg.findtext(f"{SVG}title")
    assert svg.find(f"{SVG}rect").get("fill") == colour  # type: ignore[union-attr]
    assert len(list(svg.iter(f"{SVG}text"))) > 5
    assert not [e for e in svg.iter() if e.get("class") or e.get("style")]
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    assert width >= 2 * float(svg.get("width", "0")) - 1
    assert height >= 2 * float(svg.get("height", "0")) - 1


def test_hostile_names_stay_text_in_a_saved_picture(
    open_page: Opener, text: str, tmp_path: Path
) -> None:
    page = open_page(text)

    svg = ElementTree.fromstring(saved(page, "Save as SVG: Flame graph", tmp_path))

    assert {element.tag for element in svg.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "rect", "text")
    }
    assert any("</script>" in (element.text or "") for element in svg.iter(f"{SVG}text"))


def test_a_place_leads_to_its_source(open_page: Opener, tmp_path: Path) -> None:
    from test_report_source import PROGRAM, recorded

    file = tmp_path / "catalog.py"
    file.write_text(PROGRAM)
    page = open_page(trace_page([recorded(file)], [{"verdict": "", "summary": "", "findings": []}]))
    mark = page.locator("#source mark").first
    assert not mark.is_visible()

    page.locator("#blocks a.place-link").first.click()

    assert mark.is_visible()
    assert mark.inner_text().strip() == "with self.lock:"


def test_a_place_leads_to_its_source_in_the_folded_list(open_page: Opener, tmp_path: Path) -> None:
    from test_report_source import recorded_at_many_places

    trace = recorded_at_many_places(tmp_path / "many.py", 12)
    page = open_page(trace_page([trace], [{"verdict": "", "summary": "", "findings": []}]))
    mark = page.locator("#source details details.excerpt mark").last
    anchor = page.locator("#source pre").last.get_attribute("id")
    assert not mark.is_visible()

    page.evaluate("anchor => { location.hash = anchor; }", anchor)

    assert mark.is_visible()
