"""`async-backend`: the global lock as it was, and a backend that queues.

A maintainer's remedy: operations return handles at once, kernels run on worker streams, and a
backward pass merely enqueues its kernels. What it costs: the lock is still global but held only as
long as queueing takes; the price moves to the hand-over of every kernel to another thread, and an
error in a kernel is met where its result is read.
"""

from contention_lab.autodiff.clients.client import LockChoice
from contention_lab.autodiff.clients.global_lock import GlobalLock
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.streams import Streams


class AsyncBackend(GlobalLock):
    """The global lock, parking unless another kind is chosen, before a backend of streams."""

    sharing = Sharing(queues=True)

    def __init__(self, lock: LockChoice | None = None) -> None:
        super().__init__(lock)
        self.backend = Streams()
