"""The figure a run of a command is measured by: its wall clock time, or a number it prints.

It reads text and runs nothing. A command may print many lines: the last match counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from contention_lab.scaling.reading import parse_time
from contention_lab.sweep.errors import SweepError

if TYPE_CHECKING:
    from contention_lab.scaling.measurements import Kind

Source = Literal["wall clock", "time", "rate"]

_GROUPED: Final = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_SHOWN_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """Where a value comes from.

    Attributes
    ----------
    source
        `wall clock`, or a `time` or `rate` in the output.
    pattern
        Regular expression for the latter two: its first group, or all of the match, is the value.
    """

    source: Source = "wall clock"
    pattern: str = ""

    @property
    def kind(self) -> Kind:
        """What the values are to a scaling law."""
        return "throughput" if self.source == "rate" else "time"

    @property
    def option(self) -> str:
        """The option that asks for it."""
        return f"--{self.source}-regex"

    def check(self) -> None:
        """Raise SweepError where the pattern is no regular expression."""
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise SweepError(f"{self.option} '{self.pattern}': {error}") from error

    def value(self, wall_s: float, output: str) -> float:
        """Return what a run measured.

        Raises
        ------
        SweepError
            The output does not say, or says what is no positive number.
        """
        if self.source == "wall clock":
            return wall_s
        matches = list(re.finditer(self.pattern, output, re.MULTILINE))
        if not matches:
            raise SweepError(
                f"the output has no match for {self.option} '{self.pattern}'"
                f"{last_lines(output) or ': it is empty'}"
            )
        found = matches[-1]
        text = (found[1] if found.re.groups else found[0]) or ""
        try:
            value = parse_time(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
        except ValueError:
            value = float("nan")
        if not 0 < value < float("inf"):
            wanted = "a time: seconds, m:ss or h:mm:ss" if self.source == "time" else "a number"
            raise SweepError(
                f"{self.option} '{self.pattern}' found {text!r}, which is not {wanted} above 0; "
                "put the number in a group, such as 'took ([0-9.]+) s'"
            )
        return value

    def to_json(self) -> dict[str, Any]:
        """Return it as a result has it."""
        return {"source": self.source, "pattern": self.pattern}


def last_lines(output: str) -> str:
    """Return the end of what a command printed as `: ...` on one line; "" where that is nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f": {' | '.join(lines[-_SHOWN_LINES:])}" if lines else ""
