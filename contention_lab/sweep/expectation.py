"""The shape of batch time against threads, and whether it is the one a scenario expects.

A shape is a coarse word on purpose: it must come out the same on any machine with more than one
core. The law behind it is fitted elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SCALES_FROM: Final = 1.6
"""With its best thread count the batch is at least so many times as fast as with the fewest:
it scales. A lock around two thirds of the work allows 1.5 on any number of cores, two cores 2."""
RETROGRADE_FROM: Final = 1.5
"""With the most threads it takes at least so many times as long: retrograde, whatever its best."""


def observed_shape(seconds: Mapping[int, float]) -> str | None:
    """Return one of `scenario.SHAPES`, or None where fewer than two thread counts were measured.

    Parameters
    ----------
    seconds
        Batch time by number of threads.
    """
    if len(seconds) < 2:
        return None
    first_s = seconds[min(seconds)]
    if seconds[max(seconds)] / first_s >= RETROGRADE_FROM:
        return "retrograde"
    return "scales" if first_s / min(seconds.values()) >= SCALES_FROM else "flat"
