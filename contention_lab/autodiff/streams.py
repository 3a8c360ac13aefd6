"""A backend that queues: operations return handles at once, worker threads run the kernels.

It models the streams of a GPU. A client thread is bound to one stream, where its kernels run in
order; a kernel that needs a result of another stream waits for it. Everybody waits only for what
was queued earlier, so streams cannot wait for each other in a circle.
"""

import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from contention_lab.autodiff.backend import Array, Backend, Handle
from contention_lab.autodiff.worker import Worker, settle

LEAD = 1024
"""How many kernels a client thread may be ahead of the one that runs: a training loop that reads
no result is held back there, before the arrays of its queued kernels fill the memory."""


class Streams(Backend):
    """Kernels run later, on one worker thread for every core."""

    def __init__(self) -> None:
        self._streams = [Worker(f"kernel stream {i}") for i in range(os.cpu_count() or 1)]
        self._turn = itertools.cycle(self._streams)
        self._mine = threading.local()

    def call(self, kernel: Callable[..., Array], *operands: Handle) -> Handle:
        """Queue `kernel` on the calling thread's stream and return the handle of its result."""
        mine = self._mine
        if not hasattr(mine, "stream"):
            mine.stream, mine.ahead = next(self._turn), deque[weakref.ref[Future[Array]]]()
        result: Future[Array] = Future()
        mine.stream.post(lambda: settle(result, lambda: kernel(*map(self.read, operands))))
        mine.ahead.append(weakref.ref(result))
        if len(mine.ahead) > LEAD and (oldest := mine.ahead.popleft()()) is not None:
            oldest.exception()  # waits; whoever reads the result raises it
        return result

    def read(self, handle: Handle) -> Array:
        """Wait for the kernel behind `handle` and return its array."""
        return handle.result() if isinstance(handle, Future) else np.asarray(handle)

    def close(self) -> None:
        """Run what is queued and end the worker threads."""
        for stream in self._streams:
            stream.close()
