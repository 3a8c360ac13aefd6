"""The vocabulary of the tape: a node for every tracked value, a step for every way back from it.

It runs nothing and shares nothing. One constraint shapes it: steps and nodes name other nodes by
identity only. Nothing but live tensors (and messages on their way to a server) refers to a `Node`
itself, so Python's own reference count says whether anybody still needs it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from contention_lab.autodiff.backend import Handle


class GraphError(RuntimeError):
    """The graph cannot be used this way; the message says why and what to do instead."""


class NodeId:
    """The identity of a node: equal to itself only, so no counter is shared by the threads."""

    __slots__ = ()


class Node:
    """One tracked value in the graph of a computation.

    Attributes
    ----------
    parents : tuple of NodeId
        The tracked operands it was computed from; empty for a root, which is a parameter.
    order : int
        Depth: 0 for a root, else one more than its deepest parent's.
    home : Any
        Where the client keeps the node, if that client has more than one place.
    """

    __slots__ = ("__weakref__", "home", "id", "order", "parents")

    def __init__(self, parents: Sequence["Node"] = ()) -> None:
        self.id = NodeId()
        self.parents = tuple(parent.id for parent in parents)
        self.order: int = 1 + max((parent.order for parent in parents), default=-1)
        self.home: Any = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step back: `pull_back` turns the gradient of `node` into those of `parents`, in order."""

    node: NodeId
    order: int
    parents: tuple[NodeId, ...]
    pull_back: Callable[[Handle], Sequence[Handle]]
