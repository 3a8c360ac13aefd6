"""The gradients of one backward pass, and how they come about.

A tape is a list of steps, deepest node last. It is private to whoever took it out of a server, so
running it needs no lock; whether a client holds one all the same is that client's choice.
"""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contention_lab.autodiff.backend import Array, Backend, Handle
from contention_lab.autodiff.graph import Node, NodeId, Step

if TYPE_CHECKING:
    from contention_lab.autodiff.tensor import Tensor

Tape: TypeAlias = list[Step]


class Gradients:
    """Gradients of one loss, by node; after the pass those of the parameters are left."""

    def __init__(self, backend: Backend, root: Node, gradient: Handle) -> None:
        self._backend = backend
        self._handles: dict[NodeId, Handle] = {root.id: gradient}

    def run(self, tape: Tape) -> "Gradients":
        """Run `tape` from its last step to its first, emptying it, and return these gradients.

        This is the whole of reverse mode. By the time a step is due, every step that uses its node
        has run, so the node's gradient is complete: take it, pull it back, and add the results to
        the gradients of the parents.
        """
        while tape:
            step = tape.pop()
            gradient = self._handles.pop(step.node)
            for parent, part in zip(step.parents, step.pull_back(gradient), strict=True):
                known = self._handles.get(parent)
                total = part if known is None else self._backend.call(np.add, known, part)
                self._handles[parent] = total
        return self

    def handle(self, tensor: "Tensor") -> Handle:
        """Return the handle of a parameter's gradient, without waiting; KeyError if it has none."""
        if tensor not in self:
            raise KeyError("no gradient: not a parameter, or the loss does not depend on it")
        return self._handles[tensor.node.id]  # type: ignore[union-attr]

    def __getitem__(self, tensor: "Tensor") -> Array:
        """Wait for and return the gradient of a parameter, an array of its shape and dtype."""
        return self._backend.read(self.handle(tensor))

    def __contains__(self, tensor: "Tensor") -> bool:
        return tensor.node is not None and tensor.node.id in self._handles
