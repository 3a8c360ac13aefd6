"""One server, one lock around all that is done to it: what three of the clients are made of.

It does not say which lock. The lock covers `register`, which is quick, and the whole of `backward`,
which is not: half to two thirds of the arithmetic of a training step is done while it is held. So
threads are seen waiting in `register`, and what they wait for is somebody else's `backward`.
"""

from collections.abc import Sequence
from threading import get_ident

from contention_lab.autodiff.clients.client import Client, LockChoice
from contention_lab.autodiff.graph import GraphError, Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients


class GlobalLock(Client):
    """A server behind a lock that is held from the beginning of each call to its end.

    A step that registers or runs backward would wait for ever, for the lock its own thread holds.
    """

    nested_backward = False

    def __init__(self, lock: LockChoice | None = None) -> None:
        super().__init__(lock)
        self._lock = self._make("autodiff server")
        self._server = Server()
        self._runner: int | None = None  # the thread in `backward`; it alone sees itself in here

    def register(self, node: Node, step: Step, _parents: Sequence[Node]) -> None:
        """Register under the lock."""
        self._refuse_nesting()
        with self._lock:
            self._server.register(node, step)

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Take the tape, run it and clean up, all under the lock."""
        self._refuse_nesting()
        with self._lock:
            self._runner = get_ident()
            try:
                return self._server.backward(root, gradients)
            finally:
                self._runner = None

    def servers(self) -> Sequence[Server]:
        """Return the one server."""
        return [self._server]

    def _refuse_nesting(self) -> None:
        if self._runner == get_ident():
            raise GraphError(
                "a backward step used tracked tensors while its own thread holds the global lock, "
                "which would deadlock; use a client with nested_backward, such as 'narrow-lock'"
            )
