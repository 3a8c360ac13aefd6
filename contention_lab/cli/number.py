"""Options that are numbers, and what is said of one that is none or out of bounds.

Click's own words for it are those of its types ("not a valid float range"); ours are those of every
other mistake: what was typed, and what to type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from typing import Any


class Number(click.FloatRange):
    """A number within bounds; not a number (`nan`) is within none.

    Parameters
    ----------
    least, most
        The bounds, which belong to it; None for none.
    of
        What it counts (`seconds`), for the complaint.
    """

    def __init__(
        self, least: float | None = None, most: float | None = None, *, of: str = ""
    ) -> None:
        super().__init__(least, most)
        self.of = of

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read what was typed."""
        try:
            number = float(super().convert(value, param, ctx))
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            wanted = "a number" + (f" of {self.of}" if self.of else "")
            _complain(value, wanted + _within(self), param, ctx)
        return number


class Whole(click.IntRange):
    """A whole number within bounds.

    Parameters
    ----------
    least, most
        The bounds, which belong to it; None for none.
    """

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        super().__init__(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read what was typed."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            _complain(value, "a whole number" + _within(self), param, ctx)


def _within(bounds: click.IntRange | click.FloatRange) -> str:
    """Say which numbers may be given."""
    if bounds.max is None:
        return "" if bounds.min is None else f" from {bounds.min:,}"
    return f" from {bounds.min:,} to {bounds.max:,}"


def _complain(
    value: object, wanted: str, param: click.Parameter | None, ctx: click.Context | None
) -> NoReturn:
    """Refuse what was typed; say what to type.

    Raises
    ------
    click.UsageError
        Always.
    """
    name = ""
    if param is not None:
        is_option = isinstance(param, click.Option)
        name = f"{max(param.opts, key=len) if is_option else param.human_readable_name} "
    raise click.UsageError(f"{name}{str(value)!r}: give {wanted}", ctx)
