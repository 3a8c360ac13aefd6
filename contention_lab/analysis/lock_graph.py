"""Lock order as a graph: which locks are taken under which, locks of one place as one.

It adds up what `lock_order` looks at one by one, for people to look at: a lock of which a thousand
were made at one place is one node. Rings are those of `lock_order.inversions`; nothing is judged
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.analysis.lock_order import inversions, signals
from contention_lab.analysis.sites import user_frame

if TYPE_CHECKING:
    from contention_lab.analysis.lock_order import Inversion
    from contention_lab.trace import Frame, Lock, Trace


@dataclass(frozen=True, slots=True)
class LockNode:
    """All locks of one type and name that were made at one place.

    Attributes
    ----------
    lock
        The first of them.
    instances
        How many took part.
    """

    lock: Lock
    instances: int


@dataclass(frozen=True, slots=True)
class OrderEdge:
    """A lock was held while another one was taken.

    Attributes
    ----------
    held, taken
        Positions in `LockGraph.nodes`.
    threads
        How many threads did so.
    places
        Where the held one had been acquired and where the other one was taken, each pair once, in
        the order in which they were first seen; None where no user code is known.
    in_ring
        It is a step of one of the rings.
    """

    held: int
    taken: int
    threads: int
    places: tuple[tuple[Frame | None, Frame | None], ...]
    in_ring: bool


@dataclass(frozen=True, slots=True)
class LockGraph:
    """The order in which locks are taken.

    Attributes
    ----------
    nodes
        In the order in which they were first seen.
    edges
        Likewise.
    rings
        Orders that contradict each other.
    """

    nodes: tuple[LockNode, ...]
    edges: tuple[OrderEdge, ...]
    rings: tuple[Inversion, ...]


def lock_graph(trace: Trace) -> LockGraph:
    """Return the graph of a trace. Signals are no locks here, as in `lock_order`."""
    orders = trace.orders
    unwanted = {0, *signals(orders).tolist()}
    places: dict[tuple[object, ...], int] = {}
    members: list[set[int]] = []
    node_of: dict[int, int] = {}

    def node(number: int) -> int:
        if number not in node_of:
            node_of[number] = places.setdefault(_key(trace.lock(number)), len(places))
            members.extend(set() for _ in range(len(places) - len(members)))
            members[node_of[number]].add(number)
        return node_of[number]

    threads: dict[tuple[int, int], set[int]] = {}
    seen: dict[tuple[int, int], dict[tuple[Frame | None, Frame | None], None]] = {}
    names = ["held", "lock", "thread", "held_site", "stack"]
    for held, taken, thread, site, stack in orders[names].tolist():
        if held in unwanted or taken in unwanted or held == taken:
            continue
        edge = node(held), node(taken)
        threads.setdefault(edge, set()).add(thread)
        place = trace.frames.get(site), user_frame(trace.stack(stack))
        seen.setdefault(edge, {})[place] = None
    rings = inversions(trace)
    ringed = {(node(step.held), node(step.taken)) for ring in rings for step in ring.steps}
    return LockGraph(
        tuple(LockNode(trace.lock(min(group)), len(group)) for group in members),
        tuple(
            OrderEdge(*edge, len(threads[edge]), tuple(seen[edge]), edge in ringed)
            for edge in threads
        ),
        rings,
    )


def _key(lock: Lock) -> tuple[object, ...]:
    """Return by what locks are one node; those of unknown name and place stay apart."""
    return lock.type, lock.label, lock.site
