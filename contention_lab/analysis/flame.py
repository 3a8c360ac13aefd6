"""Flame graphs: waiting, spinning or holding as a tree of calls.

It makes the tree; drawing is the report's, and the stacks are those of `weighted_stacks`. The root
is the whole, outermost frames are next to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.weighted_stacks import LockStep, Step, weighted_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.analysis.blame import Blame
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace

ROOT: Final = Step("all", "", 0, 0)


@dataclass(frozen=True, slots=True)
class FlameNode:
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
    tree = _Branch(ROOT)
    ends: dict[tuple[Step, ...], _Branch] = {}
    for stack in weighted_stacks(trace, view, blame, by_thread=by_thread, most=most):
        end = ends.get(stack.steps)
        if end is None:
            end = ends[stack.steps] = tree.end_of(stack.steps)
        end.add(stack.ns, stack.thread)
    return tree.frozen()


@dataclass(slots=True)
class _Branch:
    """A node that still grows."""

    step: Step
    ns: int = 0
    lines: set[int] = field(default_factory=set)
    children: dict[tuple[str, str, int], _Branch] = field(default_factory=dict)
    threads: dict[int, int] = field(default_factory=dict)

    def end_of(self, steps: Sequence[Step]) -> _Branch:
        """Return the node at which these steps end, made with those before it if it is new."""
        branch = self
        for step in steps:
            name, file, line, first_line = step
            key = name, file, first_line
            child = branch.children.get(key)
            if child is None:
                child = branch.children[key] = _Branch(step)
            child.lines.add(line)
            branch = child
        return branch

    def add(self, ns: int, thread: int | None) -> None:
        self.ns += ns
        if thread is not None:
            self.threads[thread] = self.threads.get(thread, 0) + ns

    def frozen(self) -> FlameNode:
        children = tuple(
            sorted(
                (child.frozen() for child in self.children.values()),
                key=lambda node: (-node.total_ns, node.name, node.file, node.line),
            )
        )
        name, file, line, first_line = self.step
        return FlameNode(
            name,
            file,
            line if len(self.lines) <= 1 else first_line,
            self.ns,
            self.ns + sum(child.total_ns for child in children),
            children,
            isinstance(self.step, LockStep),
            tuple(self.threads.items()),
        )
