"""The difference of flame graphs, in rows and names: what the page says without its picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contention_lab.comparison.frame_difference import frame_difference
from contention_lab.report.difference_data import walked
from contention_lab.report.flame_kinds import shown_kinds
from contention_lab.report.flame_table import is_lock
from contention_lab.report.quantity import seconds
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.comparison import Difference
    from contention_lab.comparison.difference import Word
    from contention_lab.comparison.frame_difference import FrameDifference
    from contention_lab.report.flame_kinds import FlameKind
    from contention_lab.report.point_view import PointView

SMALLEST_SHARE: Final = 0.005
"""Of the larger side, below which a frame gets no row."""
MOST_ROWS: Final = 40
MOST_NAMED: Final = 12
DEEPEST: Final = 12
"""Indents beyond this look alike."""
LONG_CHAIN: Final = 4

WORDS: Final[Mapping[str, str]] = {
    "worse": "more",
    "better": "less",
    "new": "new",
    "gone": "gone",
    "no difference": "no difference",
    "not repeated": "",
}
"""What a frame's word is on the page: of time alone, more is neither worse nor better."""


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A frame, or a chain of frames that share their figures."""

    depth: int
    text: str
    place: str
    time: Difference
    word: str


@dataclass(frozen=True, slots=True)
class NamedFrame:
    """A frame that only one side has; what it calls is new or gone with it."""

    name: str
    place: str
    caller: str
    """Empty if it has none."""
    seconds: float
    with_it: int
    """Frames below it."""


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """One of the difference flame graphs without its picture."""

    kind: FlameKind
    root: FrameDifference
    rows: tuple[DifferenceRow, ...]
    left_out: int
    """Frames without a row."""
    new: tuple[NamedFrame, ...]
    gone: tuple[NamedFrame, ...]
    more_named: int
    """New and gone frames that are not named."""


def difference_view(kind: FlameKind, root: FrameDifference) -> DifferenceView:
    """Return what is said of a difference tree."""
    rows, left_out = _rows(root, kind.key)
    named = {word: _named(root, word) for word in ("new", "gone")}
    shown = {word: tuple(found[:MOST_NAMED]) for word, found in named.items()}
    more = sum(len(named[word]) - len(shown[word]) for word in named)
    return DifferenceView(kind, root, rows, left_out, shown["new"], shown["gone"], more)


def run_pair(points: Sequence[PointView], current: PointView) -> tuple[PointView, PointView] | None:
    """Return the runs of a page whose difference it opens with; None if there is one run only.

    The run that the page opens with, after the one of its group with the fewest threads that waited
    at all (of traces the first); if that is itself, before the one with the most.
    """
    waited = [point for point in points if point.waiting_s] or points
    mine = [point for point in waited if point.group == current.group]
    ordered = sorted(mine if len(mine) > 1 else points, key=lambda point: point.threads or 0)
    if len(ordered) < 2:
        return None
    first, last = ordered[0], ordered[-1]
    return (current, last) if first is current else (first, current)


def run_differences(points: Sequence[PointView], current: PointView | None) -> dict[str, Any]:
    """Return what the template needs to offer the difference of two runs of one page.

    Parameters
    ----------
    points
        The runs of the page.
    current
        The one that it opens with.
    """
    pair = None if current is None else run_pair(points, current)
    kinds = shown_kinds(point.flames for point in points)
    return {
        "difference_title": "Difference of two runs",
        "difference_points": points,
        "difference_pair": pair,
        "differences": () if pair is None else _differences(*pair, kinds),
    }


def _differences(
    before: PointView, after: PointView, kinds: Sequence[FlameKind]
) -> tuple[DifferenceView, ...]:
    return tuple(
        difference_view(kind, frame_difference([before.flames[kind.key]], [after.flames[kind.key]]))
        for kind in kinds
    )


def change_said(found: Difference) -> str:
    """Return a change in words: `+1.2 s (+92 %)`."""
    sign = "−" if found.change < 0 else "+"
    times = f" ({found.in_times.replace('-', '−')})" if found.in_times else ""
    return f"{sign}{seconds(abs(found.change))}{times}"


def interval_said(found: Difference) -> str:
    """Return the interval of a change: `+0.9 s to +1.3 s`; empty without repeats."""
    if found.low is None or found.high is None:
        return ""
    low, high = (
        f"{'−' if bound < 0 else '+'}{seconds(abs(bound))}" for bound in (found.low, found.high)
    )
    return f"{low} to {high}"


def _rows(root: FrameDifference, view: str) -> tuple[tuple[DifferenceRow, ...], int]:
    rows: list[DifferenceRow] = []
    left_out = 0
    pending = [(child, 0, 1) for child in reversed(root.children)]
    while pending:
        node, depth, level = pending.pop()
        if node.total_ns < SMALLEST_SHARE * root.total_ns or len(rows) >= MOST_ROWS:
            left_out += 1
            continue
        chain = [(node, is_lock(view, level, node))]
        while len(node.children) == 1 and _is_alike(node, node.children[0]):
            node, level = node.children[0], level + 1
            chain.append((node, is_lock(view, level, node)))
        rows.append(
            DifferenceRow(
                min(depth, DEEPEST),
                _chain([one for one, _ in chain]),
                _place_of(chain),
                node.time,
                WORDS[node.word],
            )
        )
        pending.extend((child, depth + 1, level + 1) for child in reversed(node.children))
    return tuple(rows), left_out


def _is_alike(node: FrameDifference, child: FrameDifference) -> bool:
    same = (child.time.before, child.time.after) == (node.time.before, node.time.after)
    return same and child.word == node.word


def _chain(chain: list[FrameDifference]) -> str:
    names = [name(node.name) for node in chain]
    if len(names) > LONG_CHAIN:
        names = [names[0], f"… {len(names) - 3} frames …", *names[-2:]]
    return " › ".join(names)


def _named(root: FrameDifference, word: Word) -> list[NamedFrame]:
    """Return the outermost frames with a word, the longest first. The whole is no frame."""
    found = []
    for node, callers in walked(root):
        if not callers or node.word != word or any(one.word == word for one in callers[1:]):
            continue
        caller = name(callers[-1].name) if len(callers) > 1 else ""
        below = sum(1 for _ in walked(node)) - 1
        longest = max(node.time.before, node.time.after)
        found.append(NamedFrame(name(node.name), _place(node), caller, longest, below))
    return sorted(found, key=lambda frame: (-frame.seconds, frame.name, frame.place))


def _place_of(chain: list[tuple[FrameDifference, bool]]) -> str:
    """Where the last call of a chain is; of a lock alone, where it was made."""
    calls = [node for node, locks in chain if not locks]
    if calls:
        return _place(calls[-1])
    made = _place(chain[-1][0])
    return f"made at {made}" if made else ""


def _place(node: FrameDifference) -> str:
    return f"{short_path(node.file)}:{node.line}" if node.file else ""
