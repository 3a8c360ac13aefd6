"""Lock order as the page shows it: the locks in a row, the orders between them, and the rings.

Locks are in an order in which each comes after those it is taken under. Where there is none, orders
lead back up, and a ring is what the picture shows as one. It formats nothing but names and places.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.report.block_table import Site
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.analysis.lock_graph import LockGraph, LockNode, OrderEdge
    from contention_lab.analysis.lock_order import Inversion
    from contention_lab.trace import Frame, Trace

MOST_LOCKS: Final = 16
"""In the picture: those of rings first, then the program's own, then the others."""
MOST_ORDERS: Final = 40
"""Rows of the table."""
MOST_RINGS: Final = 8


@dataclass(frozen=True, slots=True)
class NodeView:
    """A lock in the picture."""

    title: str
    what: str
    """Its type, how many there are, and where they were made."""


@dataclass(frozen=True, slots=True)
class OrderView:
    """One lock held while another was taken: a row of the table, and a line of the picture."""

    held: int
    taken: int
    """Positions in `LockOrderView.nodes`; -1 for a lock that is not in the picture."""
    held_title: str
    taken_title: str
    held_at: Site
    taken_at: Site
    more_places: int
    threads: int
    in_ring: bool


@dataclass(frozen=True, slots=True)
class RingStep:
    """A thread takes a lock while it holds another."""

    thread: str
    taken: str
    held: str
    taken_at: Site
    held_at: Site


@dataclass(frozen=True, slots=True)
class LockOrderView:
    """What the page shows of the order of locks.

    Attributes
    ----------
    nodes
        Of the picture, from the outermost lock to the innermost.
    orders
        Those of rings first.
    orders_left_out, locks_left_out, rings_left_out
        What there was no room for.
    rings
        The steps of each.
    """

    nodes: tuple[NodeView, ...]
    orders: tuple[OrderView, ...]
    rings: tuple[tuple[RingStep, ...], ...]
    orders_left_out: int
    locks_left_out: int
    rings_left_out: int

    @property
    def sentence(self) -> str:
        """The picture in words."""
        if not self.orders:
            return "No thread took a lock while it held another one."
        seen = len(self.orders) + self.orders_left_out
        said = f"{seen} {'order' if seen == 1 else 'orders'} in which locks were taken: "
        rings = len(self.rings) + self.rings_left_out
        if not rings:
            return f"{said}none contradicts another, so no deadlock can come of them."
        first = " then ".join([*(step.held for step in self.rings[0]), self.rings[0][0].held])
        return (
            f"{said}{rings} {'ring' if rings == 1 else 'rings'} in which threads can wait for each "
            f"other for ever, the first is {first}."
        )


def lock_order_view(trace: Trace, graph: LockGraph) -> LockOrderView:
    """Lay out the order in which a trace's locks were taken; the graph is that of the trace."""
    shown = _shown(graph)
    place = {node: at for at, node in enumerate(_outermost_first(shown, graph.edges))}
    orders = sorted(graph.edges, key=lambda edge: (not edge.in_ring, not _is_users(edge)))
    return LockOrderView(
        nodes=tuple(_node(graph.nodes[node]) for node in place),
        orders=tuple(_order(graph, edge, place) for edge in orders[:MOST_ORDERS]),
        rings=tuple(_ring(trace, ring) for ring in graph.rings[:MOST_RINGS]),
        orders_left_out=max(0, len(orders) - MOST_ORDERS),
        locks_left_out=len(graph.nodes) - len(shown),
        rings_left_out=max(0, len(graph.rings) - MOST_RINGS),
    )


def _shown(graph: LockGraph) -> list[int]:
    """Return the locks of the picture, in the order in which they were first seen."""
    ringed = {end for edge in graph.edges if edge.in_ring for end in (edge.held, edge.taken)}
    users = {end for edge in graph.edges if _is_users(edge) for end in (edge.held, edge.taken)}
    degree = Counter(end for edge in graph.edges for end in (edge.held, edge.taken))

    def rank(node: int) -> tuple[bool, bool, bool, int, int]:
        site = graph.nodes[node].lock.site
        is_own = site is not None and is_user_code(site.filename)
        return node not in ringed, not is_own, node not in users, -degree[node], node

    return sorted(sorted(range(len(graph.nodes)), key=rank)[:MOST_LOCKS])


def _is_users(edge: OrderEdge) -> bool:
    return any(taken is not None for _, taken in edge.places)


def _outermost_first(nodes: Sequence[int], edges: Sequence[OrderEdge]) -> list[int]:
    """Return the nodes so that orders lead down, but for those of a knot of contradictions.

    A node comes after all nodes from which it can be reached; of a knot, all members can be
    reached from the same ones, and follow one another.
    """
    before: dict[int, set[int]] = {node: set() for node in nodes}
    for edge in edges:
        if edge.held in before and edge.taken in before and edge.held != edge.taken:
            before[edge.taken].add(edge.held)
    for middle in nodes:  # Warshall
        for node in nodes:
            if middle in before[node]:
                before[node] |= before[middle]

    def rank(node: int) -> tuple[int, int, int]:
        knot = [other for other in before[node] if node in before[other]]
        return len(before[node] | {node}), min([node, *knot]), node

    return sorted(nodes, key=rank)


def _node(node: LockNode) -> NodeView:
    site = node.lock.site
    what = [name(node.lock.type)]
    if node.instances > 1:
        what.append(f"{node.instances} of them")
    if site is not None:
        what.append(f"made at {short_path(site.filename)}:{site.line}")
    return NodeView(name(node.lock.label), ", ".join(what))


def _order(graph: LockGraph, edge: OrderEdge, place: dict[int, int]) -> OrderView:
    held_at, taken_at = edge.places[0]
    return OrderView(
        held=place.get(edge.held, -1),
        taken=place.get(edge.taken, -1),
        held_title=name(graph.nodes[edge.held].lock.label),
        taken_title=name(graph.nodes[edge.taken].lock.label),
        held_at=_site(held_at),
        taken_at=_site(taken_at),
        more_places=len(edge.places) - 1,
        threads=edge.threads,
        in_ring=edge.in_ring,
    )


def _ring(trace: Trace, ring: Inversion) -> tuple[RingStep, ...]:
    return tuple(
        RingStep(
            thread=name(trace.thread(step.thread).label),
            taken=name(trace.lock(step.taken).label),
            held=name(trace.lock(step.held).label),
            taken_at=_site(user_frame(step.stack)),
            held_at=_site(step.held_site),
        )
        for step in ring.steps
    )


def _site(frame: Frame | None) -> Site:
    if frame is None:
        return Site("code outside the program", "")
    return Site(name(frame.function), f"{short_path(frame.filename)}:{frame.line}")
