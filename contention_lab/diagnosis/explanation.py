"""What a kind of finding means, how it is decided, what to do: the text behind `explain`.

The meaning, the advice and the example are the kind's file in `explained/`. How it is decided is
the docstring of the function that decides it, so that the two cannot drift apart.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis import healthy
from contention_lab.diagnosis.registry import FINDINGS

if TYPE_CHECKING:
    from collections.abc import Callable

HEALTHY: Final = "healthy"
"""The verdict where no finding is true; the only kind that has no function to find it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A kind of finding, explained.

    Attributes
    ----------
    kind
        Its name.
    meaning
        What is going on in such a program: paragraphs, the first one a sentence.
    decided
        When it is said: paragraphs and lists, as the deciding function documents them.
    advice
        What to do about it, as a list.
    before, after
        Python code of such a program, and what becomes of it.
    """

    kind: str
    meaning: str
    decided: str
    advice: str
    before: str
    after: str

    @property
    def in_short(self) -> str:
        """The meaning in one line."""
        return self.meaning.splitlines()[0]


def kinds() -> tuple[str, ...]:
    """Return the kinds that can be a verdict, in the order in which they are looked for."""
    return (*dict.fromkeys(kind_of(find) for find in FINDINGS), HEALTHY)


def explanation(kind: str) -> Explanation:
    """Return the explanation of a kind.

    Raises
    ------
    KeyError
        If there is no such kind.
    """
    if kind not in kinds():
        raise KeyError(kind)
    file = resources.files("contention_lab.diagnosis") / "explained" / f"{kind}.md"
    _, meaning, advice, before, after = _sections(file.read_text(encoding="utf-8"))
    return Explanation(kind, meaning, _decided(kind), advice, before, after)


def kind_of(find: Callable[..., object]) -> str:
    """Return the kind that a function finds: the constant `KIND` of its module."""
    return str(vars(sys.modules[find.__module__])["KIND"])


def _decided(kind: str) -> str:
    """Return how a kind is decided, without the summary line, which is for readers of the code.

    Of a kind that is found in several ways, all of them.
    """
    found_by: list[Callable[..., object]] = [f for f in FINDINGS if kind_of(f) == kind]
    deciding = found_by or [healthy.summary]
    documented = [(inspect.getdoc(find) or "").partition("\n\n")[2].strip() for find in deciding]
    return "\n\nOr:\n\n".join(documented)


def _sections(text: str) -> list[str]:
    """Split an explanation at its headings; code loses its fences."""
    sections = [""]
    in_code = False
    for line in text.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif line.startswith("#") and not in_code:
            sections.append("")
            if line.startswith("# "):
                continue
        else:
            sections[-1] += f"{line}\n"
    return [section.strip("\n") for section in sections]
