"""What `record` puts in the place of Python's own synchronisation.

A patch is one file with a function `install(undo, module)`; a new one is one line in `PATCHES`.
Patches change classes and module globals, never instances, and import nothing that the program has
not imported: each waits for its module (`imports.py`).
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from contention_lab.capture.undo import Undo

PATCHES: "Final" = {
    "import_locks": "_frozen_importlib",
    "lock_types": "_thread",
    "sleeping": "threading",
    "condition": "threading",
    "semaphore": "threading",
    "thread_join": "threading",
    "simple_queue": "_queue",
    "future": "concurrent.futures._base",
    "thread_pool": "concurrent.futures.thread",
    "process_pool": "concurrent.futures.process",
    "tasks": "asyncio.tasks",
    "event_loop": "asyncio.events",
    "task_lock": "asyncio.locks",
    "task_semaphore": "asyncio.locks",
    "task_condition": "asyncio.locks",
    "task_event": "asyncio.locks",
    "task_queue": "asyncio.queues",
    "task_timeout": "asyncio.timeouts",
    "task_wait_for": "asyncio.tasks",
    "process_lock": "multiprocessing.synchronize",
    "process_condition": "multiprocessing.synchronize",
}
"""Patch by the module it changes, in the order of installation; removed in the reverse order."""


def install(undo: "Undo") -> None:
    """Install the patches of all modules that are there, and of the others when they come."""
    name = f"{__name__}.imports"
    __import__(name)
    sys.modules[name].install(undo, PATCHES)
