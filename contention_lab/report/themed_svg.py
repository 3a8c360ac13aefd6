"""matplotlib figures as inline SVG that follows the theme of the page.

A figure is drawn with the colours of `paint`, one made-up colour per role. Here they are turned
into classes of the style sheet, every `style` attribute into plain attributes (the page's security
policy forbids inline styles), and ids into short ones that cannot clash on a page. Text stays text
in the reader's own font. The same figure always gives the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup

from contention_lab.report.palette import LIGHT

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.figure import Figure

POINTS_PER_INCH: Final = 72
"""At this resolution one unit of the SVG is one pixel of the page at its natural size."""

_ROLES: Final = {f"#00{index:02x}ed": role for index, role in enumerate(LIGHT)}
_PAINTS: Final = {role: colour for colour, role in _ROLES.items()}
_METADATA: Final[dict[str, Any]] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_DROPPED_TAGS: Final = {"metadata", "style", "title"}
_KEPT_STYLES: Final = {
    "fill-opacity",
    "fill-rule",
    "font-style",
    "font-weight",
    "opacity",
    "stroke-dasharray",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
}
_DEFAULTS: Final = {
    "opacity": "1",
    "stroke-linejoin": "round",
    "stroke-width": "1",
    "text-anchor": "start",
}
_FONT: Final = re.compile(r"^(?:(?P<weight>bold|[1-9]00) )?(?P<size>[\d.]+)px ")
_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")


def paint(role: str) -> str:
    """The made-up colour to draw with for a role of the palette."""
    return _PAINTS[role]


def drawing(identifier: str) -> AbstractContextManager[None]:
    """Settings to make a figure under: `with drawing(identifier): ...`."""
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": identifier,
        "font.family": ["DejaVu Sans"],
        "font.size": 12,
        "text.parse_math": False,
        "text.color": paint("ink"),
        "figure.dpi": POINTS_PER_INCH,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "axes.edgecolor": paint("line"),
        "axes.labelcolor": paint("muted"),
        "axes.unicode_minus": False,
        "xtick.color": paint("line"),
        "ytick.color": paint("line"),
        "xtick.labelcolor": paint("muted"),
        "ytick.labelcolor": paint("muted"),
        "grid.color": paint("grid"),
        "grid.linewidth": 1,
        "hatch.color": paint("page"),
        "hatch.linewidth": 1,
        "path.simplify": False,
    }
    return mpl.rc_context(settings)


def themed_svg(figure: Figure, identifier: str, title: str, description: str, css: str) -> Markup:
    """Inline SVG of a figure drawn with `paint`.

    Parameters
    ----------
    figure : Figure
        Drawn within `drawing(identifier)`.
    identifier : str
        Unique on the page: prefix of every id.
    title, description : str
        What a screen reader says: the name of the picture, and what it shows in words.
    css : str
        Classes of the root element.
    """
    stream = io.BytesIO()
    with drawing(identifier), warnings.catch_warnings():
        # Names of variants may have characters that only the reader's font has.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
        figure.savefig(stream, format="svg", metadata=_METADATA, transparent=True)
    root = ElementTree.fromstring(stream.getvalue())
    _clean(root)
    _rename(root, identifier)
    root.attrib = {
        "class": f"plot {css}",
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-labelledby": f"{identifier}-title {identifier}-desc",
    }
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{identifier}-{tag}"})
        element.text = text
        root.insert(position, element)
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # built here


def _clean(element: ElementTree.Element) -> None:
    element.tag = element.tag.rpartition("}")[2]
    element.tail = None
    if element.tag != "text":
        element.text = None
    element.attrib = _attributes(element)
    for child in list(element):
        if child.tag.rpartition("}")[2] in _DROPPED_TAGS:
            element.remove(child)
        else:
            _clean(child)
    for index, child in enumerate(list(element)):
        if child.tag == "g" and not child.attrib and len(child) == 1:
            element[index] = child[0]  # a group that groups nothing


def _attributes(element: ElementTree.Element) -> dict[str, str]:
    kept: dict[str, str] = {}
    classes: list[str] = []
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "style":
            for declaration in value.split(";"):
                prop, _, setting = (part.strip() for part in declaration.partition(":"))
                _declare(prop, setting, kept, classes)
        elif key in ("fill", "stroke"):
            _declare(key, value, kept, classes)
        elif not (key == "transform" and value.startswith("rotate(-0 ")):
            kept[key] = _LONG_NUMBER.sub(_rounded, value)
    if classes:
        kept["class"] = " ".join(classes)
    return kept


def _declare(prop: str, setting: str, kept: dict[str, str], classes: list[str]) -> None:
    """Turn one CSS declaration into an attribute or a class."""
    if prop in ("fill", "stroke"):
        role = _ROLES.get(setting.lower())
        if role:
            classes.append(f"{prop[0]}-{role}")
        else:
            kept[prop] = setting  # `none`, or a pattern
    elif prop == "font":  # matplotlib before 3.9
        font = _FONT.match(setting)
        if font:
            kept["font-size"] = font["size"]
            if font["weight"]:
                kept["font-weight"] = font["weight"]
    elif prop == "font-size":
        kept["font-size"] = setting.removesuffix("px")
    elif prop in _KEPT_STYLES and setting != _DEFAULTS.get(prop):
        kept[prop] = _LONG_NUMBER.sub(_rounded, setting)


def _rename(root: ElementTree.Element, identifier: str) -> None:
    """Give every id that is used a short name, drop the others, keep references right."""
    text = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    names: dict[str, str] = {}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in used and old is not None:
            names[old] = f"{identifier}-{len(names)}"
            element.set("id", names[old])
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "href" and value.startswith("#"):
                element.set(key, f"#{names[value[1:]]}")
            elif value.startswith("url(#"):
                element.set(key, f"url(#{names[value[5:-1]]})")


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match.group()):.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
