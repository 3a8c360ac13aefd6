"""The autodiff server: the steps of one or many graphs, waiting for a backward pass.

It holds no lock and starts no thread: that is what clients differ in. Its three moves are separate
(take the tape out, run it, clean up), and between them its tables are consistent, so that a client
may let others in there, and a step may start a backward pass of its own.
"""

from contention_lab.autodiff.graph import GraphError, Node, NodeId, Step
from contention_lab.autodiff.memory import Memory
from contention_lab.autodiff.tape import Gradients, Tape

CROWDED = 1024
"""Number of nodes from which on `register` looks for dropped ones."""


class Server:
    """Steps by node, and the memory management that says which of them to keep."""

    def __init__(self) -> None:
        self._steps: dict[NodeId, Step] = {}
        self._memory = Memory()
        self._crowded = CROWDED

    def register(self, node: Node, step: Step) -> None:
        """Add a node and the step that leads back from it.

        Tensors may be dropped without a backward pass ever cleaning up behind them. So whenever
        the table has doubled since it was last looked through, it is: a constant cost per node.
        """
        self._memory.register(node)
        self._steps[node.id] = step
        if len(self._steps) > self._crowded:
            self.clean_up()
            self._crowded = max(CROWDED, 2 * len(self._steps))

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Do the three moves in a row. A lock held around this call is held throughout."""
        tape = self.take_tape(root)
        try:
            return gradients.run(tape)
        finally:
            self.clean_up()

    def take_tape(self, root: Node) -> Tape:
        """Take the steps reachable from `root` out of the tables, sorted by depth.

        Roots stay, for other graphs may lead to the same parameter. GraphError if `root`, or a
        node that it was computed from, was consumed before; the tables are then as they were.
        """
        found, seen = [root.id], {root.id}
        for node in found:  # grows while it is read: breadth-first
            if node not in self._steps:
                raise GraphError(
                    "the graph of this tensor is gone: an earlier backward pass consumed it or a "
                    "part of it; compute the tensor again before each backward pass"
                )
            new = [parent for parent in self._steps[node].parents if parent not in seen]
            found += dict.fromkeys(new)
            seen.update(new)
        taken = [node for node in found if self._steps[node].parents]
        self._memory.consume(taken)
        return sorted((self._steps.pop(node) for node in taken), key=lambda step: step.order)

    def clean_up(self) -> None:
        """Forget the nodes that the memory management drops."""
        for node in self._memory.clean_up():
            del self._steps[node]

    def absorb(self, other: "Server") -> None:
        """Take over all that `other` remembers."""
        self._steps.update(other._steps)
        self._memory.nodes.update(other._memory.nodes)
        self._memory.leaves.update(other._memory.leaves)

    def sizes(self) -> tuple[int, int, int]:
        """Return how many nodes, steps and leaves are remembered."""
        return len(self._memory.nodes), len(self._steps), len(self._memory.leaves)
