"""`channel`: one server on a thread of its own; clients send it messages.

The "async" feature. What it costs: nobody contends for a lock and registering is one message, but
there is one server, so backward passes run one at a time all the same, and a caller waits for its
reply behind everybody else's messages.
"""

from collections.abc import Callable, Sequence

from contention_lab.autodiff.clients.client import Client, LockChoice
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.graph import Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients
from contention_lab.autodiff.worker import Result, Worker


class Channel(Client):
    """A server that only its own thread touches.

    A step runs on that thread, where waiting for a reply would be waiting for oneself; what it
    registers and the backward passes it starts are therefore done on the spot.
    """

    usual_lock = None
    sharing = Sharing(covers="nothing", has_thread=True)
    nested_backward = True

    def __init__(self, lock: LockChoice | None = None) -> None:
        super().__init__(lock)
        self._server = Server()
        self._worker = Worker("autodiff server")

    def register(self, node: Node, step: Step, parents: Sequence[Node]) -> None:
        """Send the node and go on. The message keeps the parents alive until it is read."""

        def message(_alive: Sequence[Node] = parents) -> None:
            self._server.register(node, step)

        if self._worker.is_current():
            message()
        else:
            self._worker.post(message)

    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Send the request and wait for the reply, or for the exception that a step raised."""
        return self._ask(lambda: self._server.backward(root, gradients))

    def servers(self) -> Sequence[Server]:
        """Return the one server, after it has read the messages that were sent."""
        self._ask(lambda: None)
        return [self._server]

    def close(self) -> None:
        """Let the server read its messages and end its thread."""
        self._worker.close()

    def _ask(self, request: Callable[[], Result]) -> Result:
        return request() if self._worker.is_current() else self._worker.ask(request)
