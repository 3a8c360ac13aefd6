"""`narrow-lock`: one server, and a lock around its tables but not around the arithmetic.

The reporter's branch, carried through: a tape that has been taken out of the server is private, so
its steps run without the lock. What it costs: two short holds for a backward pass instead of one
long one, and the clean-up, still under the lock, still walks everybody's leaves.
"""

from collections.abc import Sequence

from contention_lab.autodiff.clients.client import Client, LockChoice
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.graph import Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients


class NarrowLock(Client):
    """A server behind a lock that is not held while steps run."""

    sharing = Sharing(covers="tables")
    nested_backward = True

    def __init__(self, lock: LockChoice | None = None) -> None:
        super().__init__(lock)
        self._lock = self._make("autodiff server")
        self._server = Server()

    def register(self, node: Node, step: Step, _parents: Sequence[Node]) -> None:
        """Register under the lock."""
        with self._lock:
            self._server.register(node, step)

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Take the tape under the lock, run it without, clean up under the lock again."""
        with self._lock:
            tape = self._server.take_tape(root)
        try:
            return gradients.run(tape)
        finally:
            with self._lock:
                self._server.clean_up()

    def servers(self) -> Sequence[Server]:
        """Return the one server."""
        return [self._server]
