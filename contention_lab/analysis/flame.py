"""Flame graphs: waiting, spinning or holding as a tree of calls.

It makes the tree; drawing is the report's, and the stacks are those of `weighted_stacks`. The root
is the whole, outermost frames are next to it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from contention_lab.analysis.weighted_stacks import LockStep, Step, weighted_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.analysis.blame import Blame
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace

ROOT: Final = Step("all", "", 0, 0)


class FlameNode(NamedTuple):
    """A function as called from its parents, or a lock.

    Attributes
    ----------
    name, file
        Qualified name of the function and its file; of a lock its label and site.
    line
        The line being executed if it is always the same, else the line the function starts at.
    self_ns
        Time of this node that no child has.
    total_ns
        With all children.
    children
        The largest first.
    is_lock
        It is a lock and no function.
    by_thread
        `self_ns` by the ids of threads, where that was asked for.
    """

    name: str
    file: str
    line: int
    self_ns: int
    total_ns: int
    children: tuple[FlameNode, ...]
    is_lock: bool = False
    by_thread: tuple[tuple[int, int], ...] = ()


def flame(
    trace: Trace,
    view: View,
    blame: Blame | None = None,
    *,
    by_thread: bool = False,
    most: int | None = None,
) -> FlameNode:
    """Return the tree of one view; what it takes is what `weighted_stacks` takes."""
    tree = _Tree()
    ends: dict[tuple[Step, ...], _Branch] = {}
    for stack in weighted_stacks(trace, view, blame, by_thread=by_thread, most=most):
        end = ends.get(stack.steps)
        if end is None:
            end = ends[stack.steps] = tree.end_of(stack.steps)
        end.add(stack.ns, stack.thread)
    return tree.frozen()


class _Branch:
    """A node that still grows."""

    __slots__ = ("children", "line", "node", "ns", "step", "threads")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.line = step.line
        self.ns = 0
        self.children: dict[tuple[str, str, int], _Branch] = {}
        self.threads: dict[int, int] = {}
        self.node: FlameNode

    def add(self, ns: int, thread: int | None) -> None:
        self.ns += ns
        if thread is not None:
            self.threads[thread] = self.threads.get(thread, 0) + ns


class _Tree:
    """The nodes of a tree in the order in which they are made: parents before children."""

    def __init__(self) -> None:
        self._branches = [_Branch(ROOT)]

    def end_of(self, steps: Sequence[Step]) -> _Branch:
        """Return the node at which these steps end, made with those before it if it is new."""
        branch = self._branches[0]
        for step in steps:
            name, file, line, first_line = step
            key = name, file, first_line
            child = branch.children.get(key)
            if child is None:
                child = branch.children[key] = _Branch(step)
                self._branches.append(child)
            elif child.line != line:
                child.line = first_line
            branch = child
        return branch

    def frozen(self) -> FlameNode:
        """Return the root. Without recursion: stacks may be deeper than an interpreter's."""
        for branch in reversed(self._branches):
            name, file, _, _ = branch.step
            children = [child.node for child in branch.children.values()]
            if len(children) > 1:
                children.sort(key=_NAMED)
                children.sort(key=_TOTAL, reverse=True)
            branch.node = FlameNode(
                name,
                file,
                branch.line,
                branch.ns,
                branch.ns + sum(map(_TOTAL, children)),
                tuple(children),
                isinstance(branch.step, LockStep),
                tuple(branch.threads.items()),
            )
        return self._branches[0].node


_NAMED: Final = attrgetter("name", "file", "line")
_TOTAL: Final = attrgetter("total_ns")
