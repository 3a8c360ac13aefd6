"""The scaling curves that are thought possible before a table is seen.

A draw is a curve of the time T(N), scale-free: the shares of T at the largest measured thread count
K that are parallel (falls as 1/N), serial (stays) and cost (grows as a power of N). Four families:
smooth; free (hardly anything but parallel work); steep (a cost that grows faster than N, as when
waiters slow the holder); and broken (the time is multiplied beyond some thread count, as when
threads outnumber cores or a socket is left). How often each is drawn comes from `experience`. It
sees no measurements (see `forecast`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats.qmc import Sobol

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.scaling.experience import Experience
    from contention_lab.scaling.law import FloatArray

DRAWS: Final = 16_384
STEEP: Final = 2
BROKEN: Final = 3
STEEPEST: Final = 8.0
"""Largest power of N with which a cost grows."""


@dataclass(frozen=True, slots=True)
class CurvePrior:
    """Equally likely curves; every array has one entry per draw.

    Attributes
    ----------
    shares
        Parallel, serial and cost share of T(K); shape (draws, 3), rows sum to one.
    power
        Of N, with which the cost grows.
    bend
        Multiple of K from which the cost grows with no more than `far_power`.
    far_power
        Largest power of N with which a cost grows far beyond K.
    drop
        Factor by which the time exceeds the smooth curve beyond the break, less one; zero without.
    place
        Where the break lies, 0 (the smallest measured count) to 1 (`reach` beyond K), in logs.
    reach
        How far beyond K breaks are thought of, as a logarithm.
    """

    shares: FloatArray
    power: FloatArray
    bend: float
    far_power: float
    drop: FloatArray
    place: FloatArray
    reach: float

    def log_throughput(
        self, threads: FloatArray, smallest: float, largest: float, draws: NDArray[np.intp]
    ) -> FloatArray:
        """Return log X(N) of some draws, up to a constant each, shape (draws, points)."""
        parallel, serial, cost = (column[:, None] for column in self.shares[draws].T)
        power = self.power[draws][:, None]
        distance = np.log(threads / largest)[None, :]
        bend = np.log(self.bend)
        growth = power * np.minimum(distance, bend)
        growth = growth + np.minimum(power, self.far_power) * np.maximum(distance - bend, 0.0)
        time = parallel * np.exp(-distance) + serial + cost * np.exp(growth)
        first = np.log(smallest / largest)
        place = first + self.place[draws][:, None] * (self.reach - first)
        beyond = np.log1p(self.drop[draws][:, None] * (distance > place))
        return np.asarray(-np.log(time) - beyond, dtype=np.float64)


@lru_cache(maxsize=4)
def curve_prior(experience: Experience, *, crowded: bool, draws: int = DRAWS) -> CurvePrior:
    """Draw curves from experience, quasi-randomly, so that every run draws the same.

    Parameters
    ----------
    experience
        The constants.
    crowded
        Whether the smallest measured count is more than one thread.
    draws
        Number of curves, a power of two.
    """
    lattice = Sobol(7, scramble=False).random_base2(int(np.log2(draws)))
    uniform = (lattice + np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0])) % 1.0
    uniform = np.clip(uniform, 1e-6, 1.0 - 1e-6)
    families = (experience.smooth, experience.free, experience.steep, experience.broken)
    odds = np.cumsum([family.odds for family in families])
    member = np.searchsorted(odds / odds[-1], uniform[:, 3])
    weights = np.array([family.weights for family in families])[member]
    sizes = np.maximum(gammaincinv(weights, uniform[:, :3]), 1e-300)
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    normal = ndtri(uniform[:, 4])
    growth = experience.growth_crowded if crowded else experience.growth
    gentle = growth * np.exp(experience.growth_spread * normal)
    steep = 1.0 + experience.steepness * np.exp(experience.steepness_spread * normal)
    drop = experience.drop * np.exp(experience.drop_spread * ndtri(uniform[:, 5]))
    return CurvePrior(
        shares=shares,
        power=np.minimum(np.where(member == STEEP, steep, gentle), STEEPEST),
        bend=experience.bend,
        far_power=experience.far_growth,
        drop=np.where(member == BROKEN, drop, 0.0),
        place=uniform[:, 6],
        reach=experience.reach,
    )
