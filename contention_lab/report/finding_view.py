"""A finding as the page shows it: who waits, who makes them wait, the figures, what to do.

It takes `Finding.to_json()`; places are shortened, figures put into words, nothing is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contention_lab.diagnosis.figures import (
    lock_figures,
    own_figures,
    severity_said,
    taken_elsewhere,
    worth_showing,
)
from contention_lab.report import quantity
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARTIES: Final = 4
"""Victims and culprits shown, at most."""


@dataclass(frozen=True, slots=True)
class PartyView:
    """One place and its share of the waiting."""

    function: str
    place: str
    share: float
    seconds: float
    taken: str
    """Where a culprit took the lock, if that is another function."""


@dataclass(frozen=True, slots=True)
class RemedyView:
    """What to do, and what it brings."""

    text: str
    gain: str


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding."""

    kind: str
    severity: str
    summary: str
    victims: tuple[PartyView, ...]
    culprits: tuple[PartyView, ...]
    figures: tuple[str, ...]
    remedies: tuple[RemedyView, ...]


def finding_view(finding: Mapping[str, Any]) -> FindingView:
    """Lay out one finding of a diagnosis."""
    evidence = finding.get("evidence") or {}
    return FindingView(
        kind=str(finding.get("kind") or ""),
        severity=severity_said(finding),
        summary=str(finding.get("summary") or ""),
        victims=_parties(finding.get("victims") or ()),
        culprits=_parties(finding.get("culprits") or ()),
        figures=(*lock_figures(evidence, finding.get("lock")), *own_figures(evidence)),
        remedies=tuple(
            RemedyView(str(remedy["text"]), _gain(remedy))
            for remedy in finding.get("remedies") or ()
        ),
    )


def _parties(parties: Sequence[Mapping[str, Any]]) -> tuple[PartyView, ...]:
    return tuple(
        PartyView(
            *_place(party.get("site")),
            share=float(party["share"]),
            seconds=float(party["thread_s"]),
            taken=_taken(party.get("acquired"), party.get("site")),
        )
        for party in worth_showing(parties, PARTIES)
    )


def _place(site: Mapping[str, Any] | None) -> tuple[str, str]:
    if not site:
        return "code outside the program", ""
    function = str(site["function"]).rsplit("<locals>.", 1)[-1]
    return name(function), f"{short_path(str(site['file']))}:{site['line']}"


def _taken(acquired: Mapping[str, Any] | None, site: Mapping[str, Any] | None) -> str:
    if not taken_elsewhere(acquired, site):
        return ""
    function, place = _place(acquired)
    return f"`{function}` ({place})"


def _gain(remedy: Mapping[str, Any]) -> str:
    speedup, low, high = (remedy.get(key) for key in ("speedup", "speedup_low", "speedup_high"))
    if speedup:
        return f"{quantity.times(speedup)}, {quantity.times(low)} to {quantity.times(high)}"
    return f"at most {quantity.times(high)}" if high and high >= 1.05 else ""
