"""Memory management: which nodes of a server can still matter to anybody.

It knows nodes, not steps; what it drops, the server drops too. A graph is held from its leaves,
the newest nodes, from which nothing has been computed yet, because from there every node is an
ancestor. The price is in `clean_up`: it walks from *all* leaves of the server, so on a server that
many threads share each backward pass pays for the graphs of all the others.
"""

import weakref
from collections.abc import Sequence
from typing import NamedTuple

from contention_lab.autodiff.graph import Node, NodeId


class _Entry(NamedTuple):
    order: int
    parents: tuple[NodeId, ...]
    node: weakref.ref[Node]  # dead as soon as no tensor holds the node


class Memory:
    """The nodes of one server, and the leaves from which all of them can be reached."""

    def __init__(self) -> None:
        self.nodes: dict[NodeId, _Entry] = {}
        self.leaves: set[NodeId] = set()

    def register(self, node: Node) -> None:
        """Add a node as a leaf; its parents are leaves no longer."""
        self.leaves.difference_update(node.parents)
        self.leaves.add(node.id)
        self.nodes[node.id] = _Entry(node.order, node.parents, weakref.ref(node))

    def consume(self, nodes: Sequence[NodeId]) -> None:
        """Forget nodes whose steps a backward pass takes away. Roots are never consumed."""
        parents = {parent for node in nodes for parent in self.nodes.pop(node).parents}
        self.leaves.difference_update(nodes)
        # What stays behind must still be reachable: the roots become leaves until the clean-up.
        self.leaves |= parents & self.nodes.keys()

    def clean_up(self) -> list[NodeId]:
        """Drop the nodes that cannot matter any more, rebuild the leaves, return what was dropped.

        A node is *unavailable* if the way back from it is broken, for a backward pass consumed an
        ancestor; *useful* if it is available and a live tensor or a useful child needs it; else it
        stays *unknown*. The useful remain. Cost: a few operations for every node in the server,
        whoever registered it.
        """
        walk = self._parents_first()
        available: set[NodeId] = set()
        for node in walk:
            if available.issuperset(self.nodes[node].parents):
                available.add(node)
        useful: set[NodeId] = set()
        needed: set[NodeId] = set()
        for node in reversed(walk):
            entry = self.nodes[node]
            if node in available and (node in needed or entry.node() is not None):
                useful.add(node)
                needed.update(entry.parents)
        dropped = [node for node in walk if node not in useful]
        for node in dropped:
            del self.nodes[node]
        self.leaves = useful - needed
        return dropped

    def _parents_first(self) -> list[NodeId]:
        walk, seen = list(self.leaves), set(self.leaves)
        for node in walk:  # grows while it is read: breadth-first
            for parent in self.nodes[node].parents:
                if parent in self.nodes and parent not in seen:
                    seen.add(parent)
                    walk.append(parent)
        return sorted(walk, key=lambda node: self.nodes[node].order)
