r"""Text of the measured program made safe to look at.

Names, paths and arguments come from a program we do not know. HTML escaping is the templates' job
(autoescape) and holds for every character; this module handles what escaping does not: control
characters, direction overrides that make a name read as another, lone surrogates that cannot be
encoded, and names too long for any page. What it replaces stays visible as `\\uXXXX`.
"""

from __future__ import annotations

import re
from typing import Final

NAME_LIMIT: Final = 200
"""Characters of a name, path or label that are shown."""
TEXT_LIMIT: Final = 4000
"""Characters of a longer text (a sentence, a command) that are shown."""

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks, overrides and isolates
    "\u2028\u2029\ufeff\ufffe\uffff"  # line separators, byte order mark, non-characters
    "\ud800-\udfff"  # lone surrogates: not encodable
    "\U000e0000-\U000e007f"  # tags: invisible
    "]"
)


def visible(text: str, limit: int = TEXT_LIMIT) -> str:
    """`text` with nothing hidden in it and at most `limit` characters.

    Emoji, combining marks and letters of right-to-left scripts stay as they are: only characters
    that have no shape of their own are written out. A text that is too long loses its middle,
    because the end of a path or of a qualified name says most.
    """
    if len(text) > limit:
        head = limit * 2 // 3
        text = f"{text[:head]} … {text[len(text) - (limit - head) :]} ({len(text):,} characters)"
    return _UNSAFE.sub(_written_out, text)


def name(text: str) -> str:
    """`visible` for names and labels."""
    return visible(text, NAME_LIMIT)


def short_path(path: str) -> str:
    """The part of a file's path that tells a reader which file it is.

    Below `site-packages` or the standard library, what follows; else the last three parts.
    """
    for marker in ("/site-packages/", "/dist-packages/"):
        if marker in path:
            return name(path.rsplit(marker, 1)[1])
    library = re.search(r"/lib/python3\.\d+t?/(.+)$", path)
    if library:
        return name(library.group(1))
    return name("/".join(path.replace("\\", "/").split("/")[-3:]).lstrip("/"))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
