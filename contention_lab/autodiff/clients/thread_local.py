"""`thread-local`: one server for each thread, and no lock at all.

"The global lock should not exist." What it costs: a graph cannot leave its thread; a tracked
tensor that another thread made is an error here, even if the threads never run at the same time.
"""

import threading
from collections.abc import Sequence

from contention_lab.autodiff.clients.client import Client, LockChoice
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.graph import GraphError, Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients


class _Mine(threading.local):
    def __init__(self) -> None:
        self.server = Server()


class ThreadLocal(Client):
    """A server for each thread; the home of a node is the server of the thread that made it."""

    usual_lock = None
    sharing = Sharing(covers="nothing", apart="threads")
    nested_backward = True

    def __init__(self, lock: LockChoice | None = None) -> None:
        super().__init__(lock)
        self._mine = _Mine()

    def register(self, node: Node, step: Step, parents: Sequence[Node]) -> None:
        """Register with the calling thread's server."""
        node.home = self._server_of(parents)
        node.home.register(node, step)

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Run on the calling thread's server."""
        return self._server_of([root]).backward(root, gradients)

    def servers(self) -> Sequence[Server]:
        """Return the calling thread's server."""
        return [self._mine.server]

    def _server_of(self, nodes: Sequence[Node]) -> Server:
        server = self._mine.server
        if any(node.home is not server for node in nodes):
            raise GraphError(
                f"thread {threading.current_thread().name!r} used a tracked tensor of another "
                "thread, and client 'thread-local' shares none; pass it on as x.detached(), or use "
                "a client that shares, such as 'graph-mutex'"
            )
        return server
