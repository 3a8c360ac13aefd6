"""The page of a comparison: `diff_page(before, after, names, comparison)`.

What `contention-lab diff` prints, with difference flame graphs. All figures are those of the
comparison; the page judges nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contention_lab.analysis import blame, flame
from contention_lab.analysis.native_program import completed
from contention_lab.comparison.compared import LEAST_S
from contention_lab.comparison.frame_difference import frame_difference
from contention_lab.comparison.observation import lock_keys
from contention_lab.report import conditions
from contention_lab.report.difference_data import flat_difference
from contention_lab.report.difference_section import change_said, difference_view, interval_said
from contention_lab.report.document import listed, render
from contention_lab.report.flame_kinds import ALL_KINDS, shown_kinds
from contention_lab.report.flame_table import FrameTable, fair_limit, tree_size
from contention_lab.report.quantity import count, seconds
from contention_lab.report.uncollected import uncollected
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contention_lab.analysis import FlameNode
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.comparison import Comparison, Difference
    from contention_lab.comparison.condition import Outcome
    from contention_lab.report.difference_section import DifferenceView
    from contention_lab.trace import Trace

CALM: Final = {"better", "no difference", "gone", "not repeated"}
"""Words for all waiting that complain of nothing."""
ROLES: Final = (("victim", "By who waits"), ("culprit", "By who makes them wait"))


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A lock or a place before and after."""

    title: str
    note: str
    found: Difference
    word: str
    change: str
    interval: str
    bar: tuple[float, float, float] | None
    """Low end, middle and high end of the change in percent of the scale; None without repeats."""
    others: tuple[str, ...] = ()
    """Other figures as text, see `OTHERS`."""


OTHERS: Final = (
    ("contended", "contended"),
    ("p99", "p99 of waits"),
    ("held", "held"),
)
"""Quantities of a lock that its row has, too, and their heads."""


@uncollected()
def diff_page(
    before: Sequence[Trace],
    after: Sequence[Trace],
    names: tuple[str, str],
    comparison: Comparison,
    outcomes: Sequence[Outcome] = (),
) -> str:
    """One HTML file that shows what became better or worse.

    Parameters
    ----------
    before, after : sequence of Trace
        The recordings of each side.
    names : tuple of str
        What the two sides are called.
    comparison : Comparison
        Of these recordings.
    outcomes : sequence of Outcome
        What became of conditions on it.

    Returns
    -------
    str
        The page; the same for the same input.
    """
    views = _views(before, after)
    shown = f"{name(names[0])} → {name(names[1])}"
    version = str(after[0].meta.get("package_version") or "")
    context = {
        "version": version,
        "title": shown,
        "kind": comparison.word,
        "calm": comparison.word in CALM and not any(one.failed for one in outcomes),
        "verdict_of": shown,
        "heading": heading(comparison),
        "warnings": list(_warnings(before, after, comparison)),
        "facts": _facts(comparison),
        "outcomes": outcomes,
        "has_intervals": comparison.has_intervals,
        "locks": _locks(comparison),
        "other_heads": [head for _, head in OTHERS],
        "places": [(title, _places(comparison, role)) for role, title in ROLES],
        "totals": _totals(comparison),
        "differences": views,
        "has_claims": comparison.has_intervals,
        "recordings": [
            ("before", names[0], _recordings(before)),
            ("after", names[1], _recordings(after)),
        ],
    }
    return render("diff.html", _data(views), context)


def heading(comparison: Comparison) -> str:
    """Return the answer in a sentence."""
    waited = comparison.totals["wait"]
    figures = f"{seconds(waited.before)} before, {seconds(waited.after)} after"
    if not comparison.has_intervals:
        return f"Waiting for locks: {figures}; one run on a side, so it may be chance."
    if comparison.word == "no difference":
        return f"No difference in waiting for locks: {figures}."
    return f"Waiting for locks is {comparison.word}: {figures}{_most_changed(comparison)}."


def _most_changed(comparison: Comparison) -> str:
    whole = comparison.totals["wait"].change
    certain = (one for one in comparison.locks if one.wait.is_certain)
    first = next((one for one in certain if one.wait.change * whole > 0), None)
    return f", most of all for “{name(first.label)}”, {change_said(first.wait)}" if first else ""


def _facts(comparison: Comparison) -> list[str]:
    waited = comparison.totals["wait"]
    found = [f"{comparison.runs[0]} and {comparison.runs[1]} recordings"]
    if comparison.has_intervals:
        found.append(f"change of the waiting {interval_said(waited)}, at 95 % confidence")
    else:
        found.append(f"change of the waiting {change_said(waited)}")
    wall = comparison.totals["wall"]
    found.append(f"recorded for {seconds(wall.before)} before, {seconds(wall.after)} after")
    return found


def _warnings(
    before: Sequence[Trace], after: Sequence[Trace], comparison: Comparison
) -> Iterator[str]:
    if not comparison.has_intervals:
        yield (
            "One side has one recording only, so nothing is known of how much it varies by "
            "itself. Compare folders with repeats to learn whether a change would come again."
        )
    for what, key, field in (
        ("Python", "python", "version"),
        ("GIL", "python", "gil"),
        ("processor", "machine", "processor"),
        ("cores", "machine", "cores"),
    ):
        sides = [_stated(side, key, field) for side in (before, after)]
        if sides[0] != sides[1]:
            yield f"Before and after differ in {what}: {_or(sides[0])} and {_or(sides[1])}."
    if any(comparison.dropped):
        lost = "{} before, {} after".format(*map(count, comparison.dropped))
        yield f"Events were dropped: {lost}. What they waited is missing."


def _stated(side: Sequence[Trace], key: str, field: str) -> list[str]:
    return sorted({str((trace.meta.get(key) or {}).get(field, "")) for trace in side})


def _or(values: Iterable[str]) -> str:
    return listed([name(value) or "not said" for value in values])


def _locks(comparison: Comparison) -> list[ChangeRow]:
    scale = _scale([one.wait for one in comparison.locks])
    return [
        _row(
            name(one.label),
            name(one.key.type),
            one.wait,
            scale,
            tuple(_pair(key, one.quantities[key]) for key, _ in OTHERS),
        )
        for one in comparison.locks
    ]


def _places(comparison: Comparison, role: str) -> list[ChangeRow]:
    found = [(place, time) for place, time in comparison.places if place.role == role]
    scale = _scale([time for _, time in found])
    return [
        _row(
            name(place.function),
            ", ".join(filter(None, (name(place.file), f"lock {name(place.lock.name)}"))),
            time,
            scale,
        )
        for place, time in found
    ]


def _row(
    title: str, note: str, found: Difference, scale: float, others: tuple[str, ...] = ()
) -> ChangeRow:
    bar = None
    if found.low is not None and found.high is not None and scale:
        low, middle, high = (
            50 + 50 * bound / scale for bound in (found.low, found.change, found.high)
        )
        bar = (low, middle, high)
    word = found.word(LEAST_S)
    return ChangeRow(
        title, note, found, word, change_said(found), interval_said(found), bar, others
    )


def _scale(found: Sequence[Difference]) -> float:
    """Return the largest end of any interval, as a distance from none, in seconds."""
    return max(
        (max(abs(one.low or 0.0), abs(one.high or 0.0), abs(one.change)) for one in found),
        default=0.0,
    )


def _pair(quantity: str, found: Difference) -> str:
    said = count if quantity == "contended" else seconds
    return f"{said(found.before)} → {said(found.after)}"


def _totals(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Return rows of the whole: what, before, after, change."""
    heads = {
        "wait": "waiting for locks",
        "spin": "of it spinning",
        "gil": "then waiting for the GIL",
        "held": "locks held",
        "wall": "recorded for",
    }
    return [
        (head, seconds(found.before), seconds(found.after), change_said(found))
        for quantity, head in heads.items()
        if (found := comparison.totals[quantity]).before or found.after
    ]


def _recordings(side: Sequence[Trace]) -> list[str]:
    return [
        ", ".join(
            filter(
                None,
                (
                    short_path(trace.path),
                    conditions.python_said(trace.meta.get("python") or {}),
                    f"recorded for {seconds(trace.duration_ns / 1e9)}",
                    conditions.moment_said(str(trace.meta.get("start_time") or "")),
                ),
            )
        )
        for trace in side
    ]


def _views(before: Sequence[Trace], after: Sequence[Trace]) -> tuple[DifferenceView, ...]:
    sides = [[_flames(trace) for trace in side] for side in (before, after)]
    known = [lock_keys(trace) for trace in (*before, *after)]
    return tuple(
        difference_view(
            kind,
            frame_difference(
                [flames[kind.key] for flames in sides[0]],
                [flames[kind.key] for flames in sides[1]],
                known,
            ),
        )
        for kind in shown_kinds([*sides[0], *sides[1]])
    )


def _flames(trace: Trace) -> Mapping[View, FlameNode]:
    trace = completed(trace)
    divided = blame(trace)
    return {kind.key: flame(trace, kind.key, divided) for kind in ALL_KINDS}


def _data(views: Sequence[DifferenceView]) -> dict[str, Any]:
    frames = FrameTable()
    limit = fair_limit([tree_size(view.root) for view in views])
    trees = {
        view.kind.key: flat_difference(view.root, view.kind.key, frames, limit) for view in views
    }
    return {"frames": frames.rows, "difference": trees}
