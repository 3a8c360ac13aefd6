"""Flame trees of two sets of recordings as one tree, with the time of every frame before and after.

Lines and folders move from one version of a program to the next, so a frame is known by its name,
the name of its file and its callers, a lock as everywhere in a comparison. Many frames are looked
at at once, and the confidence of their intervals is divided over them (Bonferroni): over those that
matter, and a chain of calls without branches counts once, since its frames have the same figures.
The whole is no frame, and has the interval that it has everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from contention_lab.comparison.compared import CONFIDENCE, LEAST_S, LEAST_SHARE
from contention_lab.comparison.difference import Difference, difference

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from contention_lab.analysis import FlameNode
    from contention_lab.comparison.difference import Word
    from contention_lab.comparison.observation import LockKey

    Names = Mapping[tuple[str, str], LockKey]


@dataclass(frozen=True, slots=True)
class FrameDifference:
    """A function as called from its parents, or a lock, before and after.

    Attributes
    ----------
    name, file, line
        As after, or before if it is gone.
    time
        Means of the two sides in seconds. It has an interval if there are repeats on both, and the
        frame has so large a share that one is told.
    word
        What became of it. Without repeats `new` and `gone` say what was seen, and other changes
        are `not repeated`.
    children
        The largest first, by whichever side has more.
    """

    name: str
    file: str
    line: int
    time: Difference
    word: Word
    children: tuple[FrameDifference, ...]

    @property
    def total_ns(self) -> int:
        """Return its time on the side that has more of it."""
        return round(1e9 * max(self.time.before, self.time.after))


def frame_difference(
    before: Sequence[FlameNode],
    after: Sequence[FlameNode],
    names: Sequence[Names] = (),
) -> FrameDifference:
    """Return the difference of two sets of trees of one view.

    Parameters
    ----------
    before, after
        The tree of each recording; at least one on each side.
    names
        What the locks of each recording are known by, first those before, see `lock_keys`; without
        it by label and file.
    """
    runs = len(before) + len(after)
    root = _Merged(before[0], runs)
    for run, tree in enumerate((*before, *after)):
        root.add(tree, run, names[run] if names else {})
    return _Judge(root, len(before)).judged(root)


@dataclass(slots=True)
class _Merged:
    """A frame of any of the recordings, with its time in each."""

    shown: FlameNode
    runs: int
    ns: list[int] = field(init=False)
    children: dict[Hashable, _Merged] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ns = [0] * self.runs

    def add(self, tree: FlameNode, run: int, names: Names) -> None:
        """Add the tree of a recording."""
        pending = [(self, tree)]
        while pending:
            mine, node = pending.pop()
            mine.shown = node
            mine.ns[run] += node.total_ns
            for child in node.children:
                key = names.get((child.name, child.file)) or (
                    child.name,
                    PurePath(child.file).name,
                )
                if key not in mine.children:
                    mine.children[key] = _Merged(child, self.runs)
                pending.append((mine.children[key], child))

    def walk(self) -> Iterator[_Merged]:
        """Yield it and everything below."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children.values())


class _Judge:
    """Says of every frame what became of it."""

    def __init__(self, root: _Merged, split: int) -> None:
        self._split = split
        self._is_repeated = 1 < split < root.runs - 1
        self._least_ns = max(LEAST_S * 1e9, LEAST_SHARE * max(root.ns))
        distinct = {tuple(node.ns) for node in root.walk() if self._matters(node)}
        self._root = root
        self._confidence = 1 - (1 - CONFIDENCE) / max(1, len(distinct))

    def _matters(self, node: _Merged) -> bool:
        return max(node.ns) >= self._least_ns

    def judged(self, node: _Merged) -> FrameDifference:
        """Return a frame and everything below."""
        children = sorted(
            map(self.judged, node.children.values()),
            key=lambda child: (-child.total_ns, child.name, child.file, child.line),
        )
        time = self._time(node)
        shown = node.shown
        return FrameDifference(
            shown.name, shown.file, shown.line, time, self._word(node, time), tuple(children)
        )

    def _time(self, node: _Merged) -> Difference:
        runs = [ns / 1e9 for ns in node.ns]
        before, after = runs[: self._split], runs[self._split :]
        if self._is_repeated and self._matters(node):
            confidence = CONFIDENCE if node is self._root else self._confidence
            return difference(before, after, confidence)
        means = sum(before) / len(before), sum(after) / len(after)
        return Difference(*means, None, None, (len(before), len(after)))

    def _word(self, node: _Merged, time: Difference) -> Word:
        if self._is_repeated and not self._matters(node):
            return "no difference"
        word = time.word(LEAST_S)
        if word == "not repeated" and not time.before:
            return "new"
        if word == "not repeated" and not time.after:
            return "gone"
        return word
