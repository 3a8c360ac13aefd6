"""Puts a page together: templates, style, scripts, data, and the policy that forbids all else.

The security policy allows exactly the one style sheet and the one script of this page, by their
hashes, and nothing from anywhere else; so a page cannot make a request, and text of the measured
program cannot run. The same context gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from contention_lab.report import quantity
from contention_lab.report.difference_section import change_said, interval_said
from contention_lab.report.lock_lines import lock_place, lock_site, lock_title
from contention_lab.report.palette import STATES, theme_css
from contention_lab.report.visible_text import name, short_path, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STYLES: Final = ("page.css", "tables.css", "flame.css", "timeline.css", "difference.css")
SCRIPTS: Final = (
    "quantity.js",
    "hash_state.js",
    "fitted_text.js",
    "tooltip.js",
    "packed_integers.js",
    "flame_tree.js",
    "flame_shape.js",
    "flame_canvas.js",
    "flame_view.js",
    "difference_tree.js",
    "difference_canvas.js",
    "difference_view.js",
    "timeline_layer.js",
    "timeline_model.js",
    "timeline_words.js",
    "timeline_axis.js",
    "timeline_paint.js",
    "timeline_canvas.js",
    "timeline_view.js",
    "copying.js",
    "tables.js",
    "svg_context.js",
    "plot_export.js",
    "theme.js",
    "main.js",
)
"""In this order, in one function: later files use what earlier ones define."""
_COMMENT: Final = re.compile(r"(?:^| +)// .*|^//$")
SOURCES_LISTED: Final = 8
"""Places whose source can be opened at once; further ones are in a list that is folded."""


def render(template: str, data: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """The finished page.

    Parameters
    ----------
    template : str
        File in `templates/`.
    data : mapping
        What the script needs, as JSON; `{}` where there is nothing to bring to life.
    context : mapping
        What the template needs.
    """
    style, script = style_sheet(), program()
    page = _environment().get_template(template)
    return page.render(
        policy=policy(style, script),
        style=Markup(style),  # our own files
        script=Markup(script),  # our own files
        data=embedded_json(data),
        **context,
    )


def prose(text: str) -> Markup:
    """A sentence in which `names` between backticks are set as code."""
    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # a backtick that closes nothing
        return escape(visible(text))
    marked = (
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )
    return Markup("").join(marked)


def policy(style: str, script: str) -> str:
    """The content security policy of a page with this style and this script."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded_json(data: Mapping[str, Any]) -> Markup:
    """JSON that is safe inside a script element: no `<`, `>` or `&` is left in it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # escaped above


@lru_cache(maxsize=1)
def style_sheet() -> str:
    """All styles, the palette first."""
    return theme_css() + "".join(_static(file) for file in STYLES)


@lru_cache(maxsize=1)
def program() -> str:
    """All scripts, in one function, so that nothing leaks into the page; without comments.

    A comment is a line that begins with two slashes, or follows code after a space.
    """
    lines = (line.strip() for file in SCRIPTS for line in _static(file).splitlines())
    lines = (_COMMENT.sub("", line) for line in lines)
    code = "\n".join(line for line in lines if line)
    return f'"use strict";(() => {{\n{code}\n}})();\n'


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("contention_lab.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "seconds": quantity.seconds,
        "share": quantity.share,
        "count": quantity.count,
        "counted": quantity.counted,
        "size": quantity.size,
        "times": quantity.times,
        "name": name,
        "prose": prose,
        "short_path": short_path,
        "lock_title": lock_title,
        "lock_place": lock_place,
        "lock_site": lock_site,
        "change": change_said,
        "interval": interval_said,
    }
    environment.globals |= {"STATES": STATES, "SOURCES_LISTED": SOURCES_LISTED}
    return environment


def _shown(value: Any) -> Any:
    """What an expression of a template prints: strings lose what cannot be seen."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _static(file: str) -> str:
    return resources.files("contention_lab.report").joinpath("static", file).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
