"""A thread that does jobs in the order they were posted: the channel's server, a kernel stream.

It does not know what a job is for. The queue is `queue.SimpleQueue` and not a channel built on the
lock kinds of this package: handing a job over is coordination, not contention, and a receiver
parked on a lock that it holds itself would be blamed for its own idleness.
"""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

Result = TypeVar("Result")


class Worker:
    """One background thread with a queue of jobs before it.

    A worker that was dropped, or forgotten until the interpreter exits, is told to stop by a
    finalizer; its thread is a daemon, so that not even a job without end holds up the exit.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True)
        self._stop = weakref.finalize(self, self._jobs.put, None)
        self._thread.start()

    def post(self, job: Callable[[], object]) -> None:
        """Queue `job`, which must not raise, and return at once."""
        if not self._stop.alive:
            raise RuntimeError(f"{self._thread.name} is closed; connect again")
        self._jobs.put(job)

    def ask(self, job: Callable[[], Result]) -> Result:
        """Queue `job`, wait until it is done, and return or raise what it did."""
        reply: Future[Result] = Future()
        self.post(lambda: settle(reply, job))
        return reply.result()

    def is_current(self) -> bool:
        """Tell whether the caller is this worker's own thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Do the jobs that are queued and end the thread. Nobody may be posting."""
        self._stop()
        self._thread.join()


def settle(reply: Future[Result], job: Callable[[], Result]) -> None:
    """Do `job` and put its result, or what it raised, into `reply`."""
    try:
        reply.set_result(job())
    except BaseException as error:
        reply.set_exception(error)


def _serve(jobs: SimpleQueue[Callable[[], object] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it refers to nodes, and nobody needs those while this thread waits
