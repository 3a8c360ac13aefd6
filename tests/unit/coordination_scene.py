"""Hand-made traces of threads that wait for one another, for tests with known answers."""

from __future__ import annotations

from typing import Any

from contention_lab.diagnosis import Diagnosis, Finding, diagnose
from contention_lab.trace import (
    ChunkKind,
    HoldFlag,
    Outcome,
    Trace,
    TraceBuilder,
    WaitFlag,
    WaitKind,
    parse,
)
from contention_lab.trace.schema import Call, State

MS = 1_000_000
PROGRAM = "/app/program.py"
LIBRARY = "/usr/lib/python3.11/"

__all__ = ["MS", "Call", "ChunkKind", "Scene", "State"]


class Scene:
    """A trace in the making; times are in milliseconds.

    Parameters
    ----------
    duration_ms
        Length of the recording.
    **meta
        More of the trace's metadata.
    """

    def __init__(self, duration_ms: float = 1000.0, **meta: Any) -> None:
        meta = {"machine": {"cores": 64}, "python": {"version": "3.11.7", "gil": True}} | meta
        self.builder = TraceBuilder(meta=meta, duration_ns=int(duration_ms * MS))
        self.duration_ms = duration_ms
        self.main = self.thread("MainThread", is_main=True)

    def thread(self, name: str, start_ms: float = 0.0, end_ms: float = 0.0, **facts: Any) -> int:
        """Return the id of a new thread."""
        start, end = int(start_ms * MS), int(end_ms * MS)
        return self.builder.add_thread(name, start_ns=start, end_ns=end, **facts)

    def frame(self, function: str, line: int, file: str = PROGRAM) -> int:
        """Return the id of a frame."""
        return self.builder.add_frame(function, file, line)

    def stack(self, *places: tuple[str, int] | str) -> int:
        """Return the id of a stack, innermost first.

        A place is a function and line of the program, or `file:function` of the library.
        """
        frames = []
        for place in places:
            if isinstance(place, str):
                file, _, function = place.partition(":")
                frames.append(self.frame(function, 1, LIBRARY + file))
            else:
                frames.append(self.frame(*place))
        return self.builder.add_stack(*frames)

    def lock(self, kind: str, line: int, name: str = "") -> int:
        """Return the id of a thing to wait for, made at a line of the program."""
        return self.builder.add_lock(kind, name=name, site=self.frame("main", line))

    def wait(
        self,
        lock: int,
        thread: int,
        start_ms: float,
        end_ms: float,
        stack: int,
        *,
        by: int = 0,
        waking: int = 0,
        wake: int = 0,
        again: bool = False,
        room: bool = False,
        outcome: Outcome = Outcome.ACQUIRED,
        kind: WaitKind = WaitKind.COORDINATION,
    ) -> None:
        """Add a wait; `by` ended it, under the stack `waking`, with its wake-up number `wake`."""
        self.builder.add_wait(
            lock,
            thread,
            int(start_ms * MS),
            int(end_ms * MS),
            stack=stack,
            holder=by,
            holder_stack=waking,
            spins=wake,
            flags=int(WaitFlag.AGAIN) * again | int(WaitFlag.ROOM) * room,
            outcome=outcome,
            kind=kind,
        )

    def visit(self, lock: int, thread: int, at_ms: float, site: int, stack: int = 0) -> None:
        """Add a short hold while somebody waits on a condition of the lock."""
        flags = int(HoldFlag.UNCONTENDED) | int(HoldFlag.WATCHED)
        start = int(at_ms * MS)
        self.builder.add_hold(
            lock, thread, start, start + 1000, site=site, stack=stack, flags=flags
        )

    def hold(self, lock: int, thread: int, start_ms: float, end_ms: float, **facts: Any) -> None:
        """Add a hold that others waited for."""
        self.builder.add_hold(lock, thread, int(start_ms * MS), int(end_ms * MS), **facts)

    def seen(
        self,
        thread: int,
        stack: int,
        start_ms: float,
        end_ms: float,
        state: State = State.RUNNABLE,
        call: int = 0,
    ) -> None:
        """Add samples of a thread, with and without its stack, every two milliseconds."""
        at = start_ms
        while at < end_ms:
            time = int(at * MS)
            self.builder.add_state(time, thread, state, call=call)
            self.builder.add_state(time + 300_000, thread, state, call=call, stack=stack)
            at += 2.0

    def trace(self) -> Trace:
        """Return it."""
        return parse(self.builder.bytes())

    def diagnosis(self) -> Diagnosis:
        """Return what is said of it."""
        return diagnose(self.trace())

    def finding(self, kind: str) -> Finding | None:
        """Return the first finding of a kind."""
        return next((one for one in self.diagnosis().findings if one.kind == kind), None)
