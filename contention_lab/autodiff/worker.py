"""A thread that does jobs in the order they were posted: the channel's server, a kernel stream.

It does not know what a job is for. Jobs come through a `Channel`: a recording takes a wait for one
as coordination, so that nobody is blamed for a server that has nothing to do.
"""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from contention_lab.locks import Channel, ClosedError

Result = TypeVar("Result")


class Worker:
    """One background thread with a channel of jobs before it.

    A worker that was dropped, or forgotten until the interpreter exits, is told to stop by a
    finalizer; its thread is a daemon, so that not even a job without end holds up the exit.
    """

    def __init__(self, name: str) -> None:
        self._jobs: Channel[Callable[[], object]] = Channel(f"jobs of {name}")
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True)
        self._stop = weakref.finalize(self, self._jobs.close)
        self._thread.start()

    def post(self, job: Callable[[], object]) -> None:
        """Queue `job`, which must not raise, and return at once."""
        try:
            self._jobs.send(job)
        except ClosedError:
            raise RuntimeError(f"{self._thread.name} is closed; connect again") from None

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


def _serve(jobs: Channel[Callable[[], object]]) -> None:
    for job in jobs:
        job()
        del job  # it refers to nodes, and nobody needs those while this thread waits
