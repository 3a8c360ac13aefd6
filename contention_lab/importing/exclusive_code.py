"""Code that seems to run under a lock, though nobody was seen to take the lock there.

Who has a lock most of the time hardly ever waits for it, so that its code is not seen to take it:
the victims spin in one function while the culprit is in another. Three things together tell such a
function from code that merely runs at the same time:

- it never runs in two threads at once, though by chance it often would;
- while it runs, somebody spins more often than while it does not;
- it was seen often enough to say both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, TypeVar

from contention_lab.sampling.holders import MOST_TOGETHER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FEWEST: Final = 30
"""Moments at which a function must have run, and at which somebody must have spun."""
FEWEST_EXPECTED: Final = 5.0
"""Moments at which two threads would be in it, if they knew nothing of each other."""
_Z: Final = 2.0
"""Standard errors by which two shares must differ."""

Place = TypeVar("Place", bound=Hashable)


def exclusive_code(
    moments: Sequence[Mapping[int, frozenset[Place] | None]], threads: int
) -> list[Place]:
    """Return the functions that seem to run under one lock.

    Parameters
    ----------
    moments
        By thread what was seen at one moment: the functions it was in, None if it spun for the
        lock.
    threads
        How many threads there are.
    """
    runs: Counter[Place] = Counter()
    twice: Counter[Place] = Counter()
    beside: Counter[Place] = Counter()
    spun = 0
    for moment in moments:
        here = Counter(place for places in moment.values() if places for place in places)
        spins = None in moment.values()
        spun += spins
        for place, count in here.items():
            runs[place] += 1
            twice[place] += count > 1
            beside[place] += spins
    whole = len(moments)
    if spun < FEWEST or threads < 2:
        return []
    found = []
    for place, count in runs.items():
        others = whole - count
        by_chance = count * count / (2 * whole) * (threads - 1) / threads
        if count < FEWEST or others < FEWEST or by_chance < FEWEST_EXPECTED:
            continue
        if twice[place] > MOST_TOGETHER * count:
            continue
        with_it, without = beside[place] / count, (spun - beside[place]) / others
        error = (
            with_it * (1.0 - with_it) / count + without * (1.0 - without) / others + 1.0 / whole**2
        ) ** 0.5
        if with_it - without > _Z * error:
            found.append(place)
    return found
