"""The shape of batch time against threads, and whether it is the one a scenario expects.

A shape is a coarse word on purpose: it must come out the same on any machine with more than one
core. The law behind it is fitted elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SCALES_AT: Final = 1 / 1.3
"""With the most threads the batch takes at most this share of the time with the fewest: scales."""
RETROGRADE_FROM: Final = 1.5
"""It takes at least so many times as long: retrograde. In between it is flat."""


def observed_shape(seconds: Mapping[int, float]) -> str | None:
    """Return one of `scenario.SHAPES`, or None where fewer than two thread counts were measured.

    Parameters
    ----------
    seconds
        Batch time by number of threads.
    """
    if len(seconds) < 2:
        return None
    ratio = seconds[max(seconds)] / seconds[min(seconds)]
    if ratio >= RETROGRADE_FROM:
        return "retrograde"
    return "scales" if ratio <= SCALES_AT else "flat"
