"""matplotlib figures as SVG of the page: themed, without inline style, the same every time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from matplotlib.figure import Figure

from contention_lab.report.themed_svg import drawing, paint, themed_svg

if TYPE_CHECKING:
    from markupsafe import Markup


def drawn(label: str = "a label") -> Markup:
    with drawing("demo"):
        figure = Figure(figsize=(4, 3))
        axes = figure.add_subplot()
        axes.plot([1, 2, 4], [3, 2, 1], color=paint("measured"), marker="o")
        axes.bar([1, 2], [1, 1], color=paint("spin"))
        axes.text(1, 2, label, color=paint("muted"), fontweight="bold")
        return themed_svg(figure, "demo", "A title", "What it shows", "wide")


def test_colours_become_classes_and_styles_become_attributes() -> None:
    svg = drawn()

    assert 'class="f-spin"' in svg
    assert "s-measured" in svg
    assert 'font-weight="700"' in svg
    assert "style" not in svg
    assert not re.search(r"#00[0-9a-f]{2}ed", svg)
    assert "<metadata" not in svg


def test_the_picture_has_a_name_and_a_description_for_screen_readers() -> None:
    root = ElementTree.fromstring(drawn())

    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "demo-title demo-desc"
    assert [(child.tag, child.text) for child in root[:2]] == [
        ("title", "A title"),
        ("desc", "What it shows"),
    ]


def test_every_reference_leads_to_an_id_with_the_prefix() -> None:
    svg = drawn()
    ids = set(re.findall(r'\bid="([^"]+)"', svg))

    references = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    assert references
    assert references <= ids
    assert all(identifier.startswith("demo-") for identifier in ids)


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert drawn() == drawn()


def test_text_stays_text_and_is_escaped() -> None:
    svg = drawn("</script> $x^2$ 🔒")

    assert "&lt;/script&gt; $x^2$ 🔒" in svg
