"""What one training consists of, call by call: kernels, registrations, backward passes.

They are counted on a training with a single row, with a client that writes down what it is asked
for and shares nothing. So the counts are those of every client, and no time is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contention_lab.autodiff.backend import Array, Backend, Handle
from contention_lab.autodiff.clients import CLIENTS
from contention_lab.autodiff.clients.client import Client
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.graph import Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients
from contention_lab.autodiff.workload import Task, parse


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a client.

    Attributes
    ----------
    is_backward
        It is a backward pass; else a node is registered.
    kernels_before
        Kernels that the thread has run since the call before.
    kernels_within
        Kernels that the backward pass runs.
    nodes
        Nodes that it takes out of the server's tables, or puts in.
    """

    is_backward: bool
    kernels_before: int
    kernels_within: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Outline:
    """What a client's threads do, and what they share.

    Attributes
    ----------
    lock
        The kind of the client's locks, a name in `contention_lab.locks.KINDS`; "" for none.
    sharing
        What the client declares.
    calls
        Those of one training, in order.
    trainings
        How many there are in the batch.
    """

    lock: str
    sharing: Sharing
    calls: tuple[Call, ...]
    trainings: int


def outline(parameters: Mapping[str, Any]) -> Outline:
    """Return the outline of a batch.

    Parameters
    ----------
    parameters : mapping
        As `workload.run` takes them; ValueError for those that it does not take.
    """
    p = parse(parameters)
    with CLIENTS[p.client](p.lock or None) as client:
        lock, sharing = p.lock or client.usual_lock or "", client.sharing
    counting = _Counting()
    Task.of(replace(p, batch=1), 0).train(counting, p.steps)
    return Outline(lock, sharing, tuple(counting.calls), p.trainings)


class _Kernels(Backend):
    """A backend that counts."""

    def __init__(self) -> None:
        self.count = 0

    def call(self, kernel: Callable[..., Array], *operands: Handle) -> Handle:
        self.count += 1
        return super().call(kernel, *operands)


class _Counting(Client):
    """A client of one thread that writes down its calls."""

    usual_lock = None
    nested_backward = True

    def __init__(self) -> None:
        super().__init__()
        self._server = Server()
        self._kernels = self.backend = _Kernels()
        self._seen = 0
        self.calls: list[Call] = []

    def register(self, node: Node, step: Step, _parents: Sequence[Node]) -> None:
        self.calls.append(Call(False, self._since(), 0, 1))
        self._server.register(node, step)

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        before, nodes = self._since(), self._server.sizes()[0]
        gradients = self._server.backward(root, gradients)
        self.calls.append(Call(True, before, self._since(), nodes))
        return gradients

    def servers(self) -> Sequence[Server]:
        return [self._server]

    def _since(self) -> int:
        seen, self._seen = self._seen, self._kernels.count
        return self._seen - seen
