"""Two sets of recordings, compared lock by lock and place by place.

Several locks are looked at at once, and each could seem to differ by chance, so the confidence of
the intervals is divided over them (Bonferroni): 95 % is that of all locks together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contention_lab.comparison.difference import Difference, difference
from contention_lab.comparison.observation import QUANTITIES, WALL, combined, observed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.comparison.difference import Word
    from contention_lab.comparison.observation import LockKey, Observation, Place
    from contention_lab.trace import Trace

    _Sides = tuple[tuple[Observation, ...], tuple[Observation, ...]]

CONFIDENCE: Final = 0.95
LEAST_S: Final = 0.001
"""A change of the waiting by less is none: a single delay by the scheduler is longer."""
LEAST_SHARE: Final = 0.01
"""Share of all waiting, on either side, from which a lock or a place is compared by itself."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One lock before and after.

    Attributes
    ----------
    key, label
        What it is known by, and how it is shown.
    quantities
        Differences, by the names of `QUANTITIES`.
    """

    key: LockKey
    label: str
    quantities: Mapping[str, Difference]

    @property
    def wait(self) -> Difference:
        """Return the difference in waiting for it."""
        return self.quantities["wait"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that two sets of recordings say about each other.

    Attributes
    ----------
    totals
        Differences of the whole, by quantity and `wall`.
    locks
        Locks that were waited for on either side, the largest change of waiting first.
    places
        Places of victims and culprits, the same.
    runs
        Recordings on each side.
    dropped
        Waits and holds lost on each side.
    """

    totals: Mapping[str, Difference]
    locks: tuple[Compared, ...]
    places: tuple[tuple[Place, Difference], ...]
    runs: tuple[int, int]
    dropped: tuple[int, int]
    observations: _Sides

    @property
    def has_intervals(self) -> bool:
        """Tell whether there are repeats on both sides."""
        return min(self.runs) > 1

    @property
    def word(self) -> Word:
        """Return what became of all waiting, in a word."""
        return self.totals["wait"].word(LEAST_S)

    def labels(self) -> list[str]:
        """Return the labels of all locks of either side, the most waited for first."""
        waited: dict[str, float] = {}
        for one in (*self.observations[0], *self.observations[1]):
            for key, label in one.labels.items():
                waited[label] = waited.get(label, 0.0) + one.locks[key]["wait"]
        return sorted(waited, key=lambda label: (-waited[label], label))

    def of_lock(self, text: str, quantity: str) -> Difference | None:
        """Return the difference in all locks whose label has a text; None if there is none."""
        keys = {
            key
            for side in self.observations
            for one in side
            for key, label in one.labels.items()
            if text.lower() in label.lower()
        }
        if not keys:
            return None
        before, after = (
            [
                combined(quantity, [one.locks[key][quantity] for key in keys if key in one.locks])
                for one in side
            ]
            for side in self.observations
        )
        return difference(before, after, CONFIDENCE)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "schema": 1,
            "verdict": self.word,
            "runs": {"before": self.runs[0], "after": self.runs[1]},
            "dropped": {"before": self.dropped[0], "after": self.dropped[1]},
            "totals": {name: found.to_json() for name, found in self.totals.items()},
            "locks": [
                {
                    "lock": one.label,
                    "type": one.key.type,
                    "verdict": one.wait.word(LEAST_S),
                    **{name: found.to_json() for name, found in one.quantities.items()},
                }
                for one in self.locks
            ],
            "places": [
                {
                    "lock": place.lock.name,
                    "role": place.role,
                    "function": place.function,
                    "file": place.file,
                    "verdict": found.word(LEAST_S),
                    "wait": found.to_json(),
                }
                for place, found in self.places
            ],
        }


def compare(before: Sequence[Trace], after: Sequence[Trace]) -> Comparison:
    """Compare two sets of recordings.

    Parameters
    ----------
    before, after
        Recordings of one version each, of the same work; at least one.

    Raises
    ------
    ValueError
        One side has none.
    """
    if not before or not after:
        raise ValueError("both sides need a recording")
    sides = tuple(map(observed, before)), tuple(map(observed, after))
    locks = _compared_locks(sides)
    return Comparison(
        totals={
            name: _between([[one.total(name) for one in side] for side in sides], CONFIDENCE)
            for name in (*QUANTITIES, WALL)
        },
        locks=locks,
        places=_compared_places(sides),
        runs=(len(before), len(after)),
        dropped=(sum(one.dropped for one in sides[0]), sum(one.dropped for one in sides[1])),
        observations=sides,
    )


def _compared_locks(
    sides: _Sides,
) -> tuple[Compared, ...]:
    """Return the locks that matter on either side."""
    least = _least_mattering(sides)
    everyone = [one for side in sides for one in side]
    keys = dict.fromkeys(
        key for one in everyone for key, figures in one.locks.items() if figures["wait"] >= least
    )
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(keys))
    labels = {key: label for one in everyone for key, label in one.labels.items()}
    none = dict.fromkeys(QUANTITIES, 0.0)
    found = [
        Compared(
            key,
            labels.get(key, key.name),
            {
                name: _between(
                    [[one.locks.get(key, none)[name] for one in side] for side in sides], confidence
                )
                for name in QUANTITIES
            },
        )
        for key in keys
    ]
    return tuple(sorted(found, key=lambda one: (-abs(one.wait.change), one.label)))


def _compared_places(
    sides: _Sides,
) -> tuple[tuple[Place, Difference], ...]:
    """Return the places that matter on either side."""
    least = _least_mattering(sides)
    places = dict.fromkeys(
        place
        for side in sides
        for one in side
        for place, waited_s in one.places.items()
        if waited_s >= least
    )
    victims = sum(place.role == "victim" for place in places)
    among = {"victim": victims, "culprit": len(places) - victims}
    confidence = {role: 1 - (1 - CONFIDENCE) / max(1, count) for role, count in among.items()}
    found = [
        (
            place,
            _between(
                [[one.places.get(place, 0.0) for one in side] for side in sides],
                confidence[place.role],
            ),
        )
        for place in places
    ]
    return tuple(sorted(found, key=lambda one: (-abs(one[1].change), one[0])))


def _least_mattering(sides: _Sides) -> float:
    """Return the waiting, in seconds, from which a lock or place is compared by itself."""
    most = max(one.total("wait") for side in sides for one in side)
    return max(LEAST_S, LEAST_SHARE * most)


def _between(sides: list[list[float]], confidence: float) -> Difference:
    """Return the difference between the figures of two sides."""
    before, after = sides
    return difference(before, after, confidence)
