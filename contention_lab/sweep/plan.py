"""The runs of a sweep, in the order in which they are made.

It starts nothing. The order is what keeps a drifting machine from looking like a law: every round
visits all points once, in an order of its own, so a slow minute touches many points a little
instead of one point a lot. The first round makes the timed and the traced run of a point one after
the other, so that an interrupted sweep has whole points and the recorder's cost is seen side by
side. The order follows from a seed, which is recorded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.sweep.scenario import Scenario


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """One variant at one thread count."""

    variant: str
    threads: int

    def __str__(self) -> str:
        return f"{self.variant} at {self.threads} {'thread' if self.threads == 1 else 'threads'}"

    @property
    def trace_name(self) -> str:
        """The path of the point's trace, below the output folder."""
        return f"traces/{quote(self.variant, safe='')}-{self.threads}.clt"


@dataclass(frozen=True, slots=True)
class Run:
    """One process: a point, and which of its repeats; None is the traced one."""

    point: Point
    repeat: int | None

    @property
    def traced(self) -> bool:
        """Whether the run is recorded, and so not one of the timed ones."""
        return self.repeat is None


def points_of(scenario: Scenario) -> tuple[Point, ...]:
    """Return the points of a scenario, by variant, then by threads."""
    return tuple(
        Point(variant, threads)
        for variant in scenario.variant_parameters()
        for threads in scenario.threads
    )


def planned_runs(
    points: Sequence[Point], repeats: int, seed: int, *, traced: bool = True
) -> tuple[Run, ...]:
    """Return every run of some points in the order to make them.

    Parameters
    ----------
    repeats
        Timed runs of each point.
    seed
        The same seed gives the same order.
    traced
        Whether each point also has a traced run.
    """
    draw = random.Random(seed)
    order: list[Run] = []
    for repeat in range(repeats):
        shuffled = list(points)
        draw.shuffle(shuffled)
        for point in shuffled:
            runs = [Run(point, repeat)]
            if repeat == 0 and traced:
                runs.append(Run(point, None))
                draw.shuffle(runs)
            order.extend(runs)
    return tuple(order)
