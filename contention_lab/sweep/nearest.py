"""The nearest valid name to one that was mistyped.

It formats the end of an error line and nothing else.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def suggestion(name: str, valid: Iterable[str]) -> str:
    """Return "; did you mean 'x'?", or the valid names where none is near.

    Parameters
    ----------
    name
        What was typed.
    valid
        What could have been typed.
    """
    names = sorted(valid)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; valid: {', '.join(names)}" if names else ""
