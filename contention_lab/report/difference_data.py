"""Difference trees as flat arrays, which the page's script lays out and draws.

As in `flame_table.py`, with the time before and after in place of one. Where there are repeats it
says what is claimed of each frame; without them the script colours by the change alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contention_lab.report.flame_table import is_lock, smallest_kept, tree_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.comparison.difference import Word
    from contention_lab.comparison.frame_difference import FrameDifference
    from contention_lab.report.flame_table import FrameTable

CLAIMS: Final[tuple[Word, ...]] = ("no difference", "worse", "better", "new", "gone")
"""By the numbers that the script knows them by."""


def flat_difference(
    root: FrameDifference, view: str, frames: FrameTable, limit: int
) -> dict[str, Any]:
    """Return a tree as lists in depth-first order: frame, depth, before and after in nanoseconds.

    Parameters
    ----------
    root
        The tree.
    view
        The view that it shows.
    frames
        Gets the frames that it lacks.
    limit
        Frames wanted at most; smaller ones become "n smaller frames" beside their siblings.

    Returns
    -------
    dict
        Of a tree with intervals also `claim`, numbers of `CLAIMS`, and `interval`, by position the
        bounds of the change in nanoseconds.
    """
    smallest = smallest_kept(root, limit)
    found: dict[str, Any] = {"frame": [], "depth": [], "before": [], "after": []}
    claims: list[int] = []
    intervals: dict[int, tuple[int, int]] = {}
    pending: list[tuple[FrameDifference | list[FrameDifference], int]] = [(root, 0)]
    while pending:
        node, level = pending.pop()
        at = len(found["depth"])
        found["depth"].append(level)
        if isinstance(node, list):
            dropped = sum(map(tree_size, node))
            found["frame"].append(frames.add(f"({dropped:,} smaller frames)", "", 0))
            found["before"].append(sum(_ns(small.time.before) for small in node))
            found["after"].append(sum(_ns(small.time.after) for small in node))
            claims.append(0)
            continue
        kind = "lock" if is_lock(view, level, node) else "code"
        found["frame"].append(frames.add(node.name, node.file, node.line, kind))
        found["before"].append(_ns(node.time.before))
        found["after"].append(_ns(node.time.after))
        claims.append(CLAIMS.index(node.word) if node.word in CLAIMS else 0)
        if node.time.low is not None and node.time.high is not None:
            intervals[at] = (_ns(node.time.low), _ns(node.time.high))
        small = [child for child in node.children if child.total_ns < smallest]
        if small:
            pending.append((small, level + 1))
        kept = (child for child in node.children if child.total_ns >= smallest)
        pending.extend((child, level + 1) for child in reversed(list(kept)))
    if min(root.time.runs) > 1:
        found |= {"claim": claims, "interval": intervals}
    return found


def walked(root: FrameDifference) -> Iterator[tuple[FrameDifference, tuple[FrameDifference, ...]]]:
    """Yield every frame with its callers, outermost first: depth-first, the largest first."""
    pending: list[tuple[FrameDifference, tuple[FrameDifference, ...]]] = [(root, ())]
    while pending:
        node, callers = pending.pop()
        yield node, callers
        pending.extend((child, (*callers, node)) for child in reversed(node.children))


def _ns(seconds: float) -> int:
    return round(1e9 * seconds)
