"""A flame tree as an indented table: what the page shows where no script runs.

Chains of calls with nothing beside them become one row, and small branches are left out (their
number is told), so that the table fits on a screen and still adds up from the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.report.flame_table import is_lock
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from contention_lab.analysis import FlameNode

SMALLEST_SHARE: Final = 0.005
MOST_ROWS: Final = 40
DEEPEST: Final = 12
"""Indents beyond this look alike."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A frame, or a chain of frames, and the time below it."""

    depth: int
    text: str
    place: str
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class CallTree:
    """The rows of one view, in depth-first order, the heaviest branch first."""

    rows: tuple[CallRow, ...]
    left_out: int
    """Branches too small to be shown."""


def call_tree(root: FlameNode, view: str) -> CallTree:
    """The heavy part of the tree of a view, as rows."""
    whole = root.total_ns
    if not whole:
        return CallTree((), 0)
    rows: list[CallRow] = []
    left_out = 0
    pending = [(child, 0, 1) for child in _heaviest_last(root)]
    while pending:
        node, depth, level = pending.pop()
        if node.total_ns < whole * SMALLEST_SHARE or len(rows) >= MOST_ROWS:
            left_out += 1
            continue
        chain, top = [node], level
        while len(node.children) == 1 and node.children[0].total_ns == node.total_ns:
            node, level = node.children[0], level + 1
            chain.append(node)
        rows.append(
            CallRow(
                min(depth, DEEPEST),
                _chain_text(chain),
                _place(chain, view, top),
                node.total_ns / 1e9,
                node.total_ns / whole,
            )
        )
        pending.extend((child, depth + 1, level + 1) for child in _heaviest_last(node))
    return CallTree(tuple(rows), left_out)


def _heaviest_last(node: FlameNode) -> list[FlameNode]:
    return sorted(node.children, key=lambda child: (child.total_ns, child.name, child.line))


def _chain_text(chain: list[FlameNode]) -> str:
    names = [name(node.name) for node in chain]
    if len(names) > 4:
        names = [names[0], f"… {len(names) - 3} frames …", *names[-2:]]
    return " › ".join(names)


def _place(chain: list[FlameNode], view: str, top: int) -> str:
    """Where the last frame of the chain is; of a lock alone, where it was made."""
    calls = [node for level, node in enumerate(chain, top) if not is_lock(view, level, node)]
    node = calls[-1] if calls else chain[-1]
    if not node.file:
        return ""
    return f"{'' if calls else 'made at '}{short_path(node.file)}:{node.line}"
