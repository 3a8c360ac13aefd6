"""`graph-mutex`: one server and one lock for each graph; a global locator finds and merges graphs.

What upstream did years later. What it costs: independent graphs no longer wait for each other, but
every call passes through the locator's lock (held for a few look-ups), every parameter starts a
graph and a lock of its own, and with many locks there is an order to keep:

- Graph locks are taken in the order of the graphs' age, oldest first. Merging takes several.
- A backward step runs while its graph's lock is held. It may therefore touch younger graphs only,
  such as those it makes itself; anything else is a `GraphError`, for it could deadlock.
- The locator's lock comes last: nobody waits for another lock while holding it.
"""

import threading
import weakref
from collections.abc import Sequence

from contention_lab.autodiff.clients.client import Client, LockChoice, LockFactory
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.graph import GraphError, Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients
from contention_lab.locks import Lock


class Graph:
    """Nodes that may be connected: their server, its lock, and where they went if it was merged.

    Nodes keep their graph alive and not the other way round: when the last tensor that leads to a
    graph goes, all of it goes, without any clean-up.
    """

    __slots__ = ("__weakref__", "age", "lock", "merged_into", "server")

    def __init__(self, age: int, lock: Lock) -> None:
        self.age, self.lock, self.server = age, lock, Server()  # a smaller age is older
        self.merged_into: Graph | None = None


class Locator:
    """Maps nodes to graphs: a node's `home` is its graph, and a merged graph points to its heir."""

    def __init__(self, make: LockFactory) -> None:
        self._make, self._lock = make, make("autodiff locator")
        self._made = 0
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()

    def find(self, nodes: Sequence[Node]) -> list[Graph]:
        """Return the graphs of `nodes`, each once, oldest first; a new graph if there are none."""
        with self._lock:
            if nodes:
                return sorted({self._heir(node) for node in nodes}, key=lambda graph: graph.age)
            self._made += 1
            graph = Graph(self._made, self._make("autodiff graph"))
            self._graphs.add(graph)
            return [graph]

    def merge(self, graphs: Sequence[Graph]) -> Graph:
        """Merge graphs whose locks the caller holds into the largest, and return that one.

        Whoever is waiting for the lock of one of the others finds it merged, and looks again.
        """
        heir = max(graphs, key=lambda graph: graph.server.sizes())
        for graph in graphs:
            if graph is not heir:
                heir.server.absorb(graph.server)
                graph.server = heir.server  # and the old one goes, with its steps
                with self._lock:
                    graph.merged_into = heir
        return heir

    def graphs(self) -> list[Graph]:
        """Return the graphs that are alive."""
        with self._lock:
            return [graph for graph in self._graphs if graph.merged_into is None]

    @staticmethod
    def _heir(node: Node) -> Graph:
        graph: Graph = node.home
        while graph.merged_into is not None:
            graph = graph.merged_into
        node.home = graph
        return graph


class _Running(threading.local):
    graph: Graph | None = None  # whose backward pass the calling thread is in


class GraphMutex(Client):
    """A lock for each graph, held from the beginning of each call to its end."""

    sharing = Sharing(apart="graphs")
    nested_backward = True  # on younger graphs

    def __init__(self, lock: LockChoice | None = None) -> None:
        super().__init__(lock)
        self._locator = Locator(self._make)
        self._running = _Running()

    def register(self, node: Node, step: Step, parents: Sequence[Node]) -> None:
        """Register with the graph of the parents, merging their graphs if they have several."""
        graph = self._lock(parents)
        try:
            node.home = graph
            graph.server.register(node, step)
        finally:
            graph.lock.release()

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Take the tape, run it and clean up, under the lock of the one graph."""
        graph = self._lock([root])
        outer, self._running.graph = self._running.graph, graph
        try:
            return graph.server.backward(root, gradients)
        finally:
            self._running.graph = outer
            graph.lock.release()

    def servers(self) -> Sequence[Server]:
        """Return the servers of the graphs that are alive."""
        return [graph.server for graph in self._locator.graphs()]

    def _lock(self, nodes: Sequence[Node]) -> Graph:
        """Lock and return the one graph that `nodes` are in, or a new one if there are none."""
        while True:
            graphs, held = self._locator.find(nodes), list[Graph]()
            running = self._running.graph
            if running is not None and graphs[0].age <= running.age:
                raise GraphError(
                    "a backward step used a graph that is not younger than its own, whose lock it "
                    "could wait for for ever; let the step make its tensors itself, or use a "
                    "client that holds no lock while steps run, such as 'narrow-lock'"
                )
            try:
                for graph in graphs:
                    graph.lock.acquire()
                    held.append(graph)
                if all(graph.merged_into is None for graph in graphs):
                    heir = self._locator.merge(graphs)
                    held.remove(heir)
                    return heir
            finally:
                for graph in held:
                    graph.lock.release()
