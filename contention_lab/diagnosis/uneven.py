"""Work of uneven size that somebody waited for: what the findings about pools and threads share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contention_lab.diagnosis.finding import Party


@dataclass(frozen=True, slots=True)
class Uneven:
    """One group of workers with a straggler.

    Attributes
    ----------
    saved_share
        Share of the run that equal shares of the work would save.
    who, straggler
        Who waits and for what, in words.
    victims, culprits
        Where it was waited, and what the straggler did meanwhile.
    evidence
        Figures.
    """

    saved_share: float
    who: str
    straggler: str
    victims: tuple[Party, ...]
    culprits: tuple[Party, ...]
    evidence: dict[str, float | int | None]
