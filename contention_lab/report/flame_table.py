"""Flame trees as flat arrays, which the page's script lays out and draws.

A tree becomes three lists in depth-first order (frame, depth, nanoseconds), with the time of each
thread beside them; frames of all trees share one table. Only when a page would grow beyond its
budget are the smallest frames of a tree merged into one "n smaller frames" beside their larger
siblings: the sums stay right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from contention_lab.report.packed_integers import packed
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.analysis import FlameNode

NODE_BUDGET: Final = 120_000
"""Nodes of all trees of a page: about 2.4 MB."""
MOST_PARTS: Final = 20_000
"""Times of single threads that a tree may have: about 120 KB."""


class Tree(Protocol):
    """A tree of times, of one recording or of two."""

    @property
    def total_ns(self) -> int:
        """Time of the node with all below, at least that of any child."""

    @property
    def children(self) -> Sequence[Tree]:
        """The nodes below."""


@dataclass(slots=True)
class FrameTable:
    """Every distinct frame of a page once: name, file, line and kind."""

    rows: list[tuple[str, str, int, str]] = field(default_factory=list)
    """Shown name, shown file, line, and `lock`, `code` or `culprit` (code of who held the lock)."""
    _index: dict[tuple[str, str, int, str], int] = field(default_factory=dict)

    def add(self, title: str, file: str, line: int, kind: str = "code") -> int:
        """Index of the frame, added if it is new."""
        key = (title, file, line, kind)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.rows)
            self.rows.append((name(title), short_path(file), line, kind))
        return found


@dataclass(slots=True)
class ThreadTable:
    """Threads of a run: their ids, numbered as they come."""

    number: dict[int, int] = field(default_factory=dict)

    def add(self, thread: int) -> int:
        """Number of the thread, added if it is new."""
        return self.number.setdefault(thread, len(self.number))


def is_lock(view: str, level: int, node: Tree) -> bool:
    """Whether a node of a view is a lock: its first level or its leaves; never in the GIL's."""
    if view.startswith("gil"):
        return False
    if view == "pair":  # somewhere in the middle
        return getattr(node, "is_lock", False)
    return level == 1 if view == "culprit" else level > 0 and not node.children


def flatten(
    root: FlameNode,
    view: str,
    frames: FrameTable,
    limit: int,
    threads: ThreadTable | None = None,
) -> dict[str, Any]:
    """The tree as `{"frame": [...], "depth": [...], "total": [...], "merged": n}`.

    Parameters
    ----------
    root : FlameNode
        Children may come in any order; the heaviest is put first.
    view : str
        The view that the tree shows.
    frames : FrameTable
        Gets the frames that it lacks.
    limit : int
        Nodes wanted at most. `merged` counts the nodes that went into "n smaller frames".
    threads : ThreadTable, optional
        Gets the threads that it lacks; with it, `whose` has for each node and thread that has time
        of its own there: steps from the node before, the thread, nanoseconds; packed. Empty where
        there are more than `MOST_PARTS`.
    """
    smallest = smallest_kept(root, limit)
    frame: list[int] = []
    depth: list[int] = []
    total: list[int] = []
    merged = 0
    whose: list[tuple[int, int, int]] = []
    pending: list[tuple[FlameNode | list[FlameNode], int, str]] = [(root, 0, "code")]
    while pending:
        node, level, kind = pending.pop()
        at = len(depth)
        depth.append(level)
        if isinstance(node, list):
            small = [*node]
            for one in small:  # the list grows while it is read
                small.extend(one.children)
            frame.append(frames.add(f"({len(small):,} smaller frames)", "", 0))
            total.append(sum(int(top.total_ns) for top in node))
            merged += len(small)
            whose += [(at, thread, ns) for one in small for thread, ns in one.by_thread]
            continue
        whose += [(at, thread, ns) for thread, ns in node.by_thread]
        lock = is_lock(view, level, node)
        frame.append(frames.add(node.name, node.file, node.line, "lock" if lock else kind))
        below = "culprit" if lock and view == "pair" else kind
        total.append(int(node.total_ns))
        kept = sorted(
            (child for child in node.children if child.total_ns >= smallest),
            key=lambda child: (-child.total_ns, child.name, child.file, child.line),
        )
        small = [child for child in node.children if child.total_ns < smallest]
        if small:
            pending.append((small, level + 1, below))
        pending.extend((child, level + 1, below) for child in reversed(kept))
    found = {"frame": frame, "depth": depth, "total": total, "merged": merged}
    return found if threads is None else found | {"whose": _packed(whose, threads)}


def _packed(whose: list[tuple[int, int, int]], threads: ThreadTable) -> str:
    if len(whose) > MOST_PARTS:
        return ""
    parts = np.array([(at, threads.add(thread), ns) for at, thread, ns in whose], dtype=np.int64)
    parts = parts.reshape(-1, 3)
    parts[1:, 0] -= parts[:-1, 0].copy()
    return packed(parts.ravel())


def tree_size(root: Tree) -> int:
    """Number of nodes of a tree."""
    return len(_walk(root))


def fair_limit(sizes: Sequence[int], budget: int = NODE_BUDGET) -> int:
    """Nodes each tree may have, so that all together stay within the budget.

    Small trees stay whole; what they leave unused goes to the large ones.
    """
    left, trees = budget, len(sizes)
    for size in sorted(sizes):
        if size * trees > left:
            return left // trees
        left -= size
        trees -= 1
    return max(sizes, default=0)


def smallest_kept(root: Tree, limit: int) -> int:
    """Smallest total to keep, so that about `limit` nodes stay. A parent outweighs its children."""
    totals = [int(node.total_ns) for node in _walk(root)]
    if len(totals) <= limit:
        return 0
    totals.sort(reverse=True)
    return totals[limit - 1] + 1 if totals[limit - 1] == totals[-1] else totals[limit - 1]


def _walk(root: Tree) -> list[Tree]:
    found = [root]
    for node in found:  # the list grows while it is read: breadth first, no recursion
        found.extend(node.children)
    return found
