"""`ThreadPoolExecutor`: how long tasks wait for a worker, and how long workers are busy.

A task that waits is no thread that waits: it is a party of its own, its wait is coordination, and
no thread's time contains it. Each task that runs is a hold of its worker on the pool, so the pool's
utilisation is the number of busy workers; these holds are recorded, within limits, although nobody
waits for them as for a lock (`native/pool_task.h`). The semaphore inside is not recorded.
"""

from contention_lab.capture.patches.around import put_around
from contention_lab.capture.patches.executors import Executor
from contention_lab.capture.patches.semaphore import SemaphorePermits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from contention_lab.capture.undo import Undo


class ThreadPool(Executor):
    """One such executor."""

    __slots__ = ()
    type_name = "concurrent.futures.ThreadPoolExecutor"


def install(undo: "Undo", module: "ModuleType") -> None:
    """Note making a pool, submitting, and queueing and running a task."""
    put_around(undo, module.ThreadPoolExecutor, "__init__", (None, _made))
    what = "ThreadPoolExecutor.submit"
    put_around(undo, module.ThreadPoolExecutor, "submit", what, ThreadPool)
    for name in ("__init__", "run"):
        put_around(undo, module._WorkItem, name, f"_WorkItem.{name}")


def _made(pool: "Any", _result: None, failed: bool) -> None:
    if not failed:
        ThreadPool.of(pool)
        SemaphorePermits.silence(pool._idle_semaphore)
