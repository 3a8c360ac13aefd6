"""A loaded trace: the tables and arrays that everything after the recorder works on.

It does not parse bytes (`reader.py` does) and draws no conclusions (`analysis` does).

Records keep what the file says, even where it cannot be true (a wait that ends before it starts):
such records are counted in `Trace.problems`, and it is the analysis that bounds them. Arrays of
one chunk are views of the mapped file; those of several are joined once, when first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from contention_lab.trace.native import NativeFrame, NativeTables
from contention_lab.trace.records import (
    hold_columns,
    joined_beats,
    joined_events,
    joined_gil,
    joined_holds,
    joined_load,
    joined_orders,
    joined_states,
    joined_steps,
    joined_waits,
    last_counters,
    last_gil_totals,
    wait_columns,
)
from contention_lab.trace.schema import ChunkKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from contention_lab.trace.columns import Columns
    from contention_lab.trace.records import Records
    from contention_lab.trace.schema import Clock, Level


class TraceError(Exception):
    """A file that cannot be used as a trace; one line: what, why, what to do."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in the program: a line of a function.

    Attributes
    ----------
    function
        Qualified name (`GlobalClient.backward`).
    filename
        As the code object has it.
    line
        The line that was being executed, 0 where unknown.
    first_line
        The line the function starts at, 0 where unknown.
    """

    function: str
    filename: str
    line: int
    first_line: int

    @property
    def module(self) -> str:
        """The file's name without folder and suffix; of a package, the folder's name."""
        path = PurePath(self.filename.replace("\\", "/"))
        return path.parent.name if path.stem == "__init__" and path.parent.name else path.stem

    @property
    def place(self) -> str:
        """File name and line, as people write it: `client.py:40`; empty without a file."""
        name = PurePath(self.filename.replace("\\", "/")).name
        return f"{name}:{self.line}" if name and self.line else name


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock of the recorded program.

    Attributes
    ----------
    id
        Its number in the file, in the order of creation.
    type
        The name of its class (`Mutex`, `threading.Lock`).
    name
        The name it was given, or empty.
    site
        Where it was made.
    parent
        The lock it is an inner part of, 0 for none.
    instance
        It is the n-th lock made at its site, from 1.
    variable
        The variable or attribute that the source assigns it to (`Catalog._lock`), or empty.
    call
        It was made by the n-th of the calls on that line which make locks, from 1.
    """

    id: int
    type: str
    name: str
    site: Frame | None
    parent: int
    instance: int
    variable: str = ""
    call: int = 1

    @property
    def is_shared(self) -> bool:
        """Several processes may share it; its name is the system's."""
        return self.type.startswith("multiprocessing.")

    @property
    def label(self) -> str:
        """The given name, else the variable, else `module:qualname:line`, else `lock #id`.

        A line that is not known is left out. Locks made by other calls than the first on their line
        end in `#2`, `#3` and so on. The name that the system has for a lock of several processes
        says nothing to a reader.
        """
        name = "" if self.is_shared and self.site is not None else self.name
        if name or self.variable:
            return name or self.variable
        if self.site is not None:
            place = f"{self.site.module}:{self.site.function}"
            place += f":{self.site.line}" if self.site.line else ""
            return place if self.call == 1 else f"{place}#{self.call}"
        return f"lock #{self.id}"


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of the recorded program.

    Attributes
    ----------
    id
        Its number in the file.
    native_id
        The operating system's number (gettid on Linux).
    ident
        `threading.get_ident()`.
    name
        Its name when last seen, or empty.
    start_ns
        Its first event, since the start of the recording.
    end_ns
        Its end, 0 if it was running when the recording stopped.
    cpu_ns
        CPU time between its first event and its end (or the last time it was looked at).
    is_main
        It is the main thread.
    from_python
        It was made by Python (`threading`), not by native code.
    is_task
        Not a thread but an asyncio task, which holds and waits like one.
    """

    id: int
    native_id: int
    ident: int
    name: str
    start_ns: int
    end_ns: int
    cpu_ns: int
    is_main: bool
    from_python: bool
    is_task: bool = False

    @property
    def label(self) -> str:
        """Its name, else `thread #id`."""
        return self.name or f"thread #{self.id}"


@dataclass(frozen=True)
class Trace:
    """Everything one `.clt` file says.

    Attributes
    ----------
    path
        The file it was read from.
    pid
        The recorded process.
    level, clock
        How much was recorded, and with which clock.
    start_unix_ns, start_mono_ns
        Wall-clock time, and time of the system's monotonic clock, of the start of the recording.
    duration_ns
        From the start to the end of the recording; of a cut file, to its last event.
    meta
        Program, arguments, Python, machine and more; see META in `FORMAT.md`.
    locks, threads, frames
        Tables by id.
    stacks
        Frame ids by stack id, innermost first.
    truncated_stacks
        Stacks whose outermost frames are missing.
    status
        The recorder's last word about itself (`schema.STATUS`), None if there is none.
    complete
        The recording was stopped in order and the file has its end.
    problems
        What is wrong with the file, one sentence each; empty for a sound one.
    """

    path: str
    pid: int
    level: Level
    clock: Clock
    start_unix_ns: int
    duration_ns: int
    meta: dict[str, Any]
    locks: dict[int, Lock]
    threads: dict[int, Thread]
    frames: dict[int, Frame]
    stacks: dict[int, tuple[int, ...]]
    truncated_stacks: frozenset[int]
    status: np.void | None
    complete: bool
    problems: tuple[str, ...]
    wait_chunks: Sequence[Records] = field(repr=False, default=())
    hold_chunks: Sequence[tuple[int, Records]] = field(repr=False, default=())
    counter_chunks: Sequence[Records] = field(repr=False, default=())
    gil_chunks: Sequence[Records] = field(repr=False, default=())
    order_chunks: Sequence[Records] = field(repr=False, default=())
    state_chunks: Sequence[Records] = field(repr=False, default=())
    load_chunks: Sequence[Records] = field(repr=False, default=())
    step_chunks: Sequence[Records] = field(repr=False, default=())
    beat_chunks: Sequence[Records] = field(repr=False, default=())
    start_mono_ns: int = 0
    layer_chunks: Mapping[ChunkKind, Sequence[Records]] = field(repr=False, default_factory=dict)
    native: NativeTables = field(repr=False, default_factory=NativeTables)
    derived: dict[str, Any] = field(repr=False, compare=False, init=False, default_factory=dict)
    """What the analysis has worked out of the records and needs again."""

    @cached_property
    def waits(self) -> Records:
        """Attempts to acquire that did not succeed at once, `schema.WAIT`, as written."""
        return joined_waits(self.wait_chunks)

    @cached_property
    def holds(self) -> Records:
        """Recorded holds, `schema.HOLD`, as written; short ones carry the flag UNCONTENDED."""
        return joined_holds(self.hold_chunks)

    @cached_property
    def wait_columns(self) -> Columns:
        """The same as `waits` by field: for large traces, of which a copy is too much."""
        return wait_columns(self.wait_chunks)

    @cached_property
    def hold_columns(self) -> Columns:
        """The same as `holds` by field."""
        return hold_columns(self.hold_chunks)

    @cached_property
    def counters(self) -> Records:
        """Totals, `schema.COUNTER`, one per lock and thread, ordered by the two."""
        return last_counters(self.counter_chunks)

    @cached_property
    def gil(self) -> Records:
        """Samples of who held the GIL, `schema.GIL_SAMPLE`; none on builds without one."""
        return joined_gil(self.gil_chunks)

    @cached_property
    def orders(self) -> Records:
        """Which locks were taken while which others were held, `schema.ORDER`."""
        return joined_orders(self.order_chunks)

    @cached_property
    def states(self) -> Records:
        """Samples of what threads were doing, `schema.STATE`; none where the system hides it."""
        return joined_states(self.state_chunks)

    @cached_property
    def steps(self) -> Records:
        """Callbacks that kept an event loop for long, `schema.LOOP_STEP`, as written."""
        return joined_steps(self.step_chunks)

    @cached_property
    def load(self) -> Records:
        """Samples of the process's threads, `schema.LOAD`; none where the system hides them."""
        return joined_load(self.load_chunks)

    @cached_property
    def beats(self) -> Records:
        """What the recorder said of itself ten times a second, `schema.STATUS`, and at the end."""
        return joined_beats(self.beat_chunks)

    @cached_property
    def gil_waits(self) -> Records:
        """Waits for the GIL, `schema.GIL_WAIT`; none without the layer below Python."""
        return self._layer_events(ChunkKind.GIL_WAITS)

    @cached_property
    def gil_holds(self) -> Records:
        """Holds of the GIL that made somebody wait, `schema.GIL_HOLD`; as `gil_waits`."""
        return self._layer_events(ChunkKind.GIL_HOLDS)

    @cached_property
    def gil_totals(self) -> Records:
        """Sums of all waits and holds, `schema.GIL_TOTAL`, one per thread; as `gil_waits`."""
        return last_gil_totals(self.layer_chunks.get(ChunkKind.GIL_TOTALS, ()))

    @cached_property
    def blocking(self) -> Records:
        """System calls in which a lock's holder was blocked, `schema.BLOCKING`; as `gil_waits`."""
        return self._layer_events(ChunkKind.BLOCKING)

    @cached_property
    def native_waits(self) -> Records:
        """Waits for locks of the C library, `schema.NATIVE_WAIT`; as `gil_waits`.

        Their locks and native stacks are in `native`.
        """
        return self._layer_events(ChunkKind.NATIVE_WAITS)

    @cached_property
    def samples(self) -> Records:
        """What sampled threads were doing, `schema.SAMPLE`; none of a program that was recorded."""
        return self._layer_events(ChunkKind.SAMPLES)

    @property
    def is_sampled(self) -> bool:
        """It is made of samples alone, and not of what a recorder saw."""
        return len(self.samples) > 0 and not len(self.counters)

    @property
    def cores(self) -> int | None:
        """Cores that the process might use; None where the recorder did not say."""
        machine = self.meta.get("machine")
        cores = machine.get("cores") if isinstance(machine, dict) else None
        return cores if type(cores) is int and cores > 0 else None

    def native_stack(self, stack_id: int) -> tuple[NativeFrame, ...]:
        """Return the native frames of a stack, innermost first; empty for an unknown one."""
        frames = self.native.frames
        ids = self.native.stacks.get(stack_id, ())
        return tuple(frame for i in ids if (frame := frames.get(i)) is not None)

    def _layer_events(self, kind: ChunkKind) -> Records:
        return joined_events(self.layer_chunks.get(kind, ()), kind)

    def stack(self, stack_id: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, innermost first; empty for an unknown one."""
        ids = self.stacks.get(stack_id, ())
        return tuple(frame for i in ids if (frame := self.frames.get(i)) is not None)

    def lock(self, lock_id: int) -> Lock:
        """Return a lock; a nameless one for an id the file does not define."""
        found = self.locks.get(lock_id)
        return found or Lock(lock_id, type="", name="", site=None, parent=0, instance=1)

    def thread(self, thread_id: int) -> Thread:
        """Return a thread; a nameless one for an id the file does not define."""
        found = self.threads.get(thread_id)
        return found or Thread(
            thread_id,
            native_id=0,
            ident=0,
            name="",
            start_ns=0,
            end_ns=0,
            cpu_ns=0,
            is_main=False,
            from_python=True,
        )
