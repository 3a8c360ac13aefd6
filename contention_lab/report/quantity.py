"""Figures as people read them: seconds, shares and counts as short text.

It rounds for the eye only; tables keep the exact figure beside the text, for sorting. Every text
has a unit (or is a bare count), and an absent figure is an en dash, never a zero.
"""

from __future__ import annotations

import math
from typing import Final

ABSENT: Final = "–"
_THIN: Final = "\N{NARROW NO-BREAK SPACE}"
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def three_digits(value: float) -> str:
    """`value` with three significant digits, without an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    if abs(float(text.replace(",", ""))) >= 10 ** (3 - digits) and digits:  # 9.996 became 10.00
        text = f"{value:,.{digits - 1}f}"
    return text


def seconds(value: float | None) -> str:
    """A duration in s, ms, µs or ns, whichever keeps the number above one.

    Parameters
    ----------
    value : float or None
        Seconds.
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return f"0{_THIN}s"
    for scale, unit in _UNITS:
        if abs(value) >= scale * 0.9995 or unit == "ns":
            return f"{three_digits(value / scale)}{_THIN}{unit}"
    raise AssertionError("unreachable: the last unit takes everything")


def share(value: float | None) -> str:
    """A share of one in per cent: `0.816` is "82 %", the smallest "<0.1 %"."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return f"0{_THIN}%"
    percent = value * 100
    if abs(percent) < 0.1:
        return f"<0.1{_THIN}%"
    digits = 0 if abs(percent) >= 9.95 else 1
    return f"{percent:.{digits}f}{_THIN}%"


def count(value: float | None) -> str:
    """A whole number (a median of counts may need rounding) with thousands separated."""
    return ABSENT if value is None else f"{round(value):,}"


def counted(value: int, noun: str) -> str:
    """A number of things: "1 lock", "12 locks"."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def size(value: int | None) -> str:
    """A number of bytes in B, kB or MB (powers of ten)."""
    if value is None:
        return ABSENT
    if value < 1000:
        return f"{value}{_THIN}B"
    if value < 1_000_000:
        return f"{three_digits(value / 1e3)}{_THIN}kB"
    return f"{three_digits(value / 1e6)}{_THIN}MB"


def times(value: float | None) -> str:
    """A ratio: `22.6` is "22.6×"."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{three_digits(value)}×"
