"""What it costs on this host to hand a job to another Python thread and get its answer.

Measured with jobs that do nothing, through `Channel` and `concurrent.futures.Future`: CPU time of
the process for a round trip, in which each of the two threads wakes the other.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from statistics import median
from typing import TYPE_CHECKING, Final, TypeAlias

from contention_lab.locks import Channel

if TYPE_CHECKING:
    from collections.abc import Callable

Jobs: TypeAlias = "Channel[Callable[[], None]]"

ROUNDS: Final = 7
TRIPS: Final = 300


def round_trip_ns() -> float:
    """Return the CPU time of handing over an empty job and getting its answer, in ns.

    The median of several rounds: some are disturbed, and in some both threads share a core.
    """
    jobs: Jobs = Channel("jobs")
    worker = threading.Thread(target=_serve, args=(jobs,), daemon=True)
    worker.start()
    try:
        return median(_round(jobs) for _ in range(ROUNDS))
    finally:
        jobs.close()
        worker.join()


def _round(jobs: Jobs) -> float:
    began = time.process_time_ns()
    for _ in range(TRIPS):
        answer: Future[None] = Future()
        jobs.send(lambda answer=answer: answer.set_result(None))  # type: ignore[misc]
        answer.result()
    return (time.process_time_ns() - began) / TRIPS


def _serve(jobs: Jobs) -> None:
    for job in jobs:
        job()
