"""What a recording says, in the terms of a test: type of lock, kind of wait, name of thread."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import contention_lab as cl
from contention_lab.trace.schema import WaitKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MS = 1_000_000


class Facts:
    """One trace."""

    def __init__(self, path: Path) -> None:
        self.trace = cl.load(path)
        assert self.trace.complete
        assert not self.trace.problems

    def locks(self, type_name: str) -> set[int]:
        """Return the ids of the locks of a type, without those of threading itself."""
        return {
            lock.id
            for lock in self.trace.locks.values()
            if lock.type == type_name and not lock.name.startswith("threading._")
        }

    def waits(self, type_name: str, kind: WaitKind = WaitKind.CONTENTION) -> list[Any]:
        """Return the waits for locks of a type, in the order of their start."""
        ids = self.locks(type_name)
        found = [w for w in self.trace.waits if int(w["lock"]) in ids and w["kind"] == kind]
        return sorted(found, key=lambda wait: int(wait["start_ns"]))

    def coordination(self, type_name: str) -> list[Any]:
        """Return the waits for a signal of something of a type."""
        return self.waits(type_name, WaitKind.COORDINATION)

    def holds(self, type_name: str) -> list[Any]:
        """Return the holds of locks of a type, in the order of their start."""
        ids = self.locks(type_name)
        found = [hold for hold in self.trace.holds if int(hold["lock"]) in ids]
        return sorted(found, key=lambda hold: int(hold["start_ns"]))

    def count(self, type_name: str, field: str) -> int:
        """Return the sum of a counter over locks of a type."""
        ids = self.locks(type_name)
        return sum(int(row[field]) for row in self.trace.counters if int(row["lock"]) in ids)

    def name(self, thread: Any) -> str:
        """Return the name of a thread or task, empty for none."""
        return self.trace.threads[int(thread)].name if int(thread) else ""

    def functions(self, stack: Any) -> list[str]:
        """Return the functions of a stack, innermost first, by their last names."""
        return [frame.function.split(".")[-1] for frame in self.trace.stack(int(stack))]

    def site(self, frame: Any) -> str:
        """Return the function of a frame, empty for none."""
        return self.trace.frames[int(frame)].function.split(".")[-1] if int(frame) else ""


def ms(record: Any) -> float:
    """Return how long a wait or hold was, in milliseconds."""
    return (int(record["end_ns"]) - int(record["start_ns"])) / MS


def run_threads(**targets: Callable[[], Any]) -> None:
    """Run functions in threads called after them."""
    threads = [threading.Thread(target=target, name=name) for name, target in targets.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def make_wait(take: Callable[[], Any], give: Callable[[], Any]) -> None:
    """Have a thread called victim wait about 100 ms for what one called culprit has taken."""
    taken, coming = threading.Event(), threading.Event()

    def culprit() -> None:
        take()
        taken.set()
        coming.wait()
        time.sleep(0.1)
        give()

    def victim() -> None:
        taken.wait()
        coming.set()
        take()
        give()

    run_threads(culprit=culprit, victim=victim)
