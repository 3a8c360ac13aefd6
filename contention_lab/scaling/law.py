"""The laws that a batch time can follow: what each says, and how it depends on its coefficients.

A law gives the time T(N) of a fixed batch of work on N threads as sums of non-negative terms, or as
the largest of two such sums. It fits nothing (see `least_squares`) and chooses nothing (see
`selection`). Every law is linear in its coefficients once its knee is known, so that non-negative
least squares finds a starting point and no fit depends on luck. A new law is one entry of `LAWS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Term:
    """One coefficient of a law, in seconds, and the share of it that N threads pay.

    Attributes
    ----------
    name
        What the coefficient is, with its unit.
    column
        Maps thread counts and the knee to the factor that multiplies the coefficient.
    """

    name: str
    column: Callable[[FloatArray, float], FloatArray]


@dataclass(frozen=True, slots=True)
class Law:
    """A family of curves T(N).

    Attributes
    ----------
    name
        Stable identifier, as in JSON.
    title
        The name in prose.
    formula
        The batch time, for people.
    terms
        The coefficients, each with its column.
    groups
        Indices of the terms that are summed; T(N) is the largest of the sums.
    has_knee
        Whether a thread count at which the regime changes is fitted too.
    """

    name: str
    title: str
    formula: str
    terms: tuple[Term, ...]
    groups: tuple[tuple[int, ...], ...]
    has_knee: bool = False

    @property
    def freedom(self) -> int:
        """Number of quantities fitted, the knee included."""
        return len(self.terms) + self.has_knee

    def columns(self, threads: FloatArray, knee: float = np.inf) -> FloatArray:
        """Return what multiplies each coefficient, shape (points, terms)."""
        return np.stack([term.column(threads, knee) for term in self.terms], axis=1)

    def design(
        self, coefficients: FloatArray, threads: FloatArray, knee: float = np.inf
    ) -> FloatArray:
        """Return the columns that count at these coefficients: the derivative of T(N).

        Parameters
        ----------
        coefficients
            In seconds, shape (..., terms).
        threads
            Thread counts, shape (points,).
        knee
            Thread count at which the regime changes, where the law has one.

        Returns
        -------
        FloatArray
            Shape (..., points, terms); T(N) is its product with the coefficients.
        """
        columns = self.columns(threads, knee)
        if len(self.groups) == 1:
            return np.broadcast_to(columns, coefficients.shape[:-1] + columns.shape)
        sums = np.stack(
            [coefficients[..., group] @ columns[:, group].T for group in map(list, self.groups)]
        )
        leading = np.argmax(sums, axis=0)
        membership = np.zeros((len(self.groups), len(self.terms)))
        for index, group in enumerate(self.groups):
            membership[index, list(group)] = 1.0
        return np.asarray(columns * membership[leading], dtype=np.float64)

    def seconds(
        self, coefficients: FloatArray, threads: FloatArray, knee: float = np.inf
    ) -> FloatArray:
        """Return T(N), shape (..., points)."""
        design = self.design(coefficients, threads, knee)
        return np.asarray(np.einsum("...nt,...t->...n", design, coefficients), dtype=np.float64)


PARALLEL: Final = Term("parallel_s", lambda threads, _knee: 1.0 / threads)
SERIAL: Final = Term("serial_s", lambda threads, _knee: np.ones_like(threads))
PER_THREAD: Final = Term("per_thread_s", lambda threads, _knee: threads - 1.0)
CAPPED: Final = Term("parallel_s", lambda threads, knee: 1.0 / np.minimum(threads, knee))
STEP: Final = Term("step_s", lambda threads, knee: (threads > knee).astype(np.float64))
BEYOND: Final = Term("per_thread_s", lambda threads, knee: np.maximum(0.0, threads - knee))

LINEAR: Final = Law("linear", "perfect scaling", "P/N", (PARALLEL,), ((0,),))
AMDAHL: Final = Law("amdahl", "Amdahl's law", "P/N + S", (PARALLEL, SERIAL), ((0, 1),))
USL: Final = Law(
    "usl",
    "Universal Scalability Law",
    "P/N + S + h(N-1)",
    (PARALLEL, SERIAL, PER_THREAD),
    ((0, 1, 2),),
)
HOCKEY_STICK: Final = Law(
    "hockey-stick", "one saturated lock", "max(P/N, S)", (PARALLEL, SERIAL), ((0,), (1,))
)
HAND_OFF: Final = Law(
    "hand-off",
    "one saturated lock whose hand-off grows with the waiters",
    "max(P/N, S + h(N-1))",
    (PARALLEL, SERIAL, PER_THREAD),
    ((0,), (1, 2)),
)
PLATEAU: Final = Law(
    "plateau",
    "Amdahl's law up to the cores, flat beyond",
    "P/min(N, K) + S",
    (CAPPED, SERIAL),
    ((0, 1),),
    has_knee=True,
)
TWO_REGIMES: Final = Law(
    "two-regimes",
    "Amdahl's law up to a break, then a step and a cost per thread",
    "P/min(N, K) + S, beyond K also + J + h(N-K)",
    (CAPPED, SERIAL, STEP, BEYOND),
    ((0, 1, 2, 3),),
    has_knee=True,
)

LAWS: Final = (LINEAR, AMDAHL, USL, HOCKEY_STICK, HAND_OFF, PLATEAU, TWO_REGIMES)
