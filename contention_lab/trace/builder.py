"""Write a trace by hand: for tests with known answers, and for importers of other formats.

It measures nothing; every time is given. Ids come from the `add_` methods, and 0 means "none", as
in the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.trace.chunk import pack_chunk, pack_header
from contention_lab.trace.records import joined_holds
from contention_lab.trace.schema import (
    COUNTER,
    FIXED_RECORDS,
    GIL_SAMPLE,
    HOLD,
    LOAD,
    LOOP_STEP,
    ORDER,
    SHORT_HOLD,
    STATE,
    STATUS,
    WAIT,
    ChunkKind,
    Clock,
    GilFlag,
    Level,
    OrderFlag,
    Outcome,
    WaitKind,
)
from contention_lab.trace.sections import (
    Section,
    code_records,
    encoded,
    fixed,
    frame_records,
    joined,
    stack_records,
    varying,
)
from contention_lab.trace.tables import (
    LOCK,
    MAIN_THREAD,
    NOT_FROM_PYTHON,
    TASK,
    THREAD,
)
from contention_lab.trace.totals import totals

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from contention_lab.trace.records import Records


class TraceBuilder:
    """A trace in the making.

    Parameters
    ----------
    level, clock, pid, start_unix_ns
        As `Trace` has them.
    duration_ns
        The end of the recording; the last event by default.
    meta
        Metadata; see META in `FORMAT.md`.
    derive_counters
        Count the records for every lock and thread that `add_counter` was not called for.
    complete
        Close the file in order.
    chunk_bytes
        Payloads are cut at this size.

    Examples
    --------
    >>> builder = TraceBuilder()
    >>> lock = builder.add_lock("Mutex", name="catalog")
    >>> reader, writer = builder.add_thread("reader"), builder.add_thread("writer")
    >>> builder.add_hold(lock, writer, 0, 100)
    >>> builder.add_wait(lock, reader, 40, 100, holder=writer)
    >>> data = builder.bytes()
    """

    def __init__(
        self,
        *,
        level: Level = Level.PROFILE,
        clock: Clock = Clock.MONOTONIC,
        pid: int = 1,
        start_unix_ns: int = 0,
        duration_ns: int | None = None,
        meta: Mapping[str, Any] | None = None,
        derive_counters: bool = True,
        complete: bool = True,
        chunk_bytes: int = 1 << 20,
    ) -> None:
        self._header = pack_header(
            start_unix_ns=start_unix_ns, mono_ns=0, pid=pid, level=level, clock=clock
        )
        self._duration_ns = duration_ns
        self._meta = dict(meta or {})
        self._derive_counters = derive_counters
        self._complete = complete
        self._chunk_bytes = chunk_bytes
        self._codes: dict[tuple[str, str, int], int] = {}
        self._frames: dict[tuple[int, int, int], int] = {}
        self._stacks: dict[tuple[tuple[int, ...], bool], int] = {}
        self._locks: list[bytes] = []
        self._threads: dict[int, bytes] = {}
        self._waits: list[Records] = []
        self._holds: list[Records] = []
        self._short_holds: dict[int, list[Records]] = {}
        self._counters: dict[tuple[int, int], Records] = {}
        self._gil: list[Records] = []
        self._orders: list[Records] = []
        self._order_groups = 0
        self._states: list[Records] = []
        self._load: list[Records] = []
        self._steps: list[Records] = []
        self._layer: dict[ChunkKind, list[Records]] = {kind: [] for kind in FIXED_RECORDS}
        self._status: dict[str, int] = {}

    def add_frame(
        self, function: str, filename: str, line: int, *, first_line: int | None = None, at: int = 0
    ) -> int:
        """Return the id of a place (instruction `at`); the function starts there by default."""
        code = (function, filename, line if first_line is None else first_line)
        code_id = self._codes.setdefault(code, len(self._codes) + 1)
        return self._frames.setdefault((code_id, line, at), len(self._frames) + 1)

    def add_stack(self, *frames: int, truncated: bool = False) -> int:
        """Return the id of a stack of frames, innermost first."""
        return self._stacks.setdefault((frames, truncated), len(self._stacks) + 1)

    def add_lock(
        self,
        lock_type: str = "Mutex",
        *,
        name: str = "",
        site: int = 0,
        parent: int = 0,
    ) -> int:
        """Return the id of a new lock, made at the frame `site`, an inner part of `parent`."""
        number = len(self._locks) + 1
        texts = [encoded(lock_type), encoded(name)]
        head = LOCK.pack(number, site, parent, 0, *map(len, texts))
        self._locks.append(head + b"".join(texts))
        return number

    def add_thread(
        self,
        name: str = "",
        *,
        start_ns: int = 0,
        end_ns: int = 0,
        cpu_ns: int = 0,
        is_main: bool = False,
        from_python: bool = True,
        is_task: bool = False,
        native_id: int | None = None,
        ident: int | None = None,
    ) -> int:
        """Return the id of a new thread; `end_ns` 0 says that it runs to the end."""
        number = len(self._threads) + 1
        flags = MAIN_THREAD * is_main | NOT_FROM_PYTHON * (not from_python) | TASK * is_task
        text = encoded(name)
        self._threads[number] = (
            THREAD.pack(
                number,
                number if native_id is None else native_id,
                number if ident is None else ident,
                start_ns,
                end_ns,
                cpu_ns,
                flags,
                len(text),
            )
            + text
        )
        return number

    def add_wait(
        self,
        lock: int,
        thread: int,
        start_ns: int,
        end_ns: int,
        *,
        stack: int = 0,
        holder: int = 0,
        holder_site: int = 0,
        spin_ns: int = 0,
        park_ns: int = 0,
        gil_ns: int = 0,
        spin_cpu_ns: int = 0,
        spins: int = 0,
        outcome: int = Outcome.ACQUIRED,
        kind: int = WaitKind.CONTENTION,
        flags: int = 0,
        waiters: int = 0,
        holder_stack: int = 0,
        awaited_stack: int = 0,
        gil_before_ns: int = 0,
    ) -> None:
        """Add one attempt that did not succeed at once."""
        times = start_ns, end_ns, spin_ns, park_ns, gil_ns, spin_cpu_ns
        ids = lock, thread, stack, holder, holder_site
        after = waiters, holder_stack, awaited_stack, gil_before_ns
        record = *times, *ids, spins, outcome, kind, flags, *after
        self.add_waits(np.array([record], dtype=WAIT))

    def add_waits(self, records: Records) -> None:
        """Add records of `schema.WAIT`."""
        self._waits.append(records.astype(WAIT, casting="no"))

    def add_hold(
        self,
        lock: int,
        thread: int,
        start_ns: int,
        end_ns: int,
        *,
        site: int = 0,
        stack: int = 0,
        cpu_ns: int = 0,
        waiters: int = 0,
        release_thread: int | None = None,
        flags: int = 0,
        preemptions: int = 0,
    ) -> None:
        """Add one hold; the thread that acquired releases, unless another is given."""
        released_by = thread if release_thread is None else release_thread
        times = start_ns, end_ns, cpu_ns
        ids = lock, thread, site, stack
        record = *times, *ids, waiters, released_by, flags, preemptions
        self.add_holds(np.array([record], dtype=HOLD))

    def add_holds(self, records: Records) -> None:
        """Add records of `schema.HOLD`."""
        self._holds.append(records.astype(HOLD, casting="no"))

    def add_short_hold(
        self, lock: int, thread: int, start_ns: int, hold_ns: int, *, site: int = 0
    ) -> None:
        """Add one hold that nobody waited for, shorter than 2^32 ns."""
        self.add_short_holds(thread, np.array([(start_ns, hold_ns, lock, site)], dtype=SHORT_HOLD))

    def add_short_holds(self, thread: int, records: Records) -> None:
        """Add records of `schema.SHORT_HOLD` of one thread."""
        self._short_holds.setdefault(thread, []).append(records.astype(SHORT_HOLD, casting="no"))

    def add_counter(self, lock: int, thread: int, **values: int) -> None:
        """Set the totals of a lock and thread, by the names of `schema.COUNTER`."""
        self._counters[lock, thread] = _record(COUNTER, {"lock": lock, "thread": thread, **values})

    def add_gil_sample(self, time_ns: int, holder: int = 0, *, held: bool = True) -> None:
        """Add a sample of the GIL: who held it, 0 for a thread that is not recorded."""
        flags = int(GilFlag.HELD) * held
        self._gil.append(np.array([(time_ns, holder, flags)], dtype=GIL_SAMPLE))

    def add_order(
        self,
        thread: int,
        lock: int,
        held: Mapping[int, int],
        *,
        stack: int = 0,
        time_ns: int = 0,
        timeout: bool = False,
    ) -> None:
        """Add that a thread takes a lock while it holds others, each with the frame it took it."""
        self._order_groups += 1
        flags = int(OrderFlag.TIMEOUT_GIVEN) * timeout
        for other, site in held.items():
            record = time_ns, thread, self._order_groups, lock, stack, other, site, flags, 0
            self._orders.append(np.array([record], dtype=ORDER))

    def add_signal(self, lock: int) -> None:
        """Add that a lock was released by a thread that had not acquired it."""
        record = 0, 0, 0, lock, 0, 0, 0, int(OrderFlag.SIGNAL), 0
        self._orders.append(np.array([record], dtype=ORDER))

    def add_state(
        self,
        time_ns: int,
        thread: int,
        state: int,
        *,
        call: int = 0,
        stack: int = 0,
        cpu_ns: int = 0,
        delay_ns: int = 0,
    ) -> None:
        """Add a sample of a thread."""
        record = time_ns, cpu_ns, delay_ns, thread, stack, state, call, 0
        self._states.append(np.array([record], dtype=STATE))

    def add_step(self, start_ns: int, end_ns: int, thread: int, **values: int) -> None:
        """Add a slow step of an event loop, by the names of `schema.LOOP_STEP`."""
        fields = {"start_ns": start_ns, "end_ns": end_ns, "thread": thread, **values}
        self._steps.append(_record(LOOP_STEP, fields))

    def add_load(self, time_ns: int, **values: int) -> None:
        """Add a sample of the process, by the names of `schema.LOAD`."""
        self._load.append(_record(LOAD, {"time_ns": time_ns, **values}))

    def add_layer_event(self, kind: ChunkKind, **values: int) -> None:
        """Add a record of one of the `schema.EVENT_KINDS`, STATUS or GIL_RUNS, by its names."""
        self.add_layer_events(kind, _record(FIXED_RECORDS[kind], values))

    def add_layer_events(self, kind: ChunkKind, records: Records) -> None:
        """Add records of one of these kinds."""
        self._layer[kind].append(records.astype(FIXED_RECORDS[kind], casting="no"))

    def set_status(self, **values: int) -> None:
        """Set what the recorder says of itself, by the names of `schema.STATUS`."""
        self._status.update(values)

    def bytes(self) -> bytes:
        """Return the whole file."""
        parts = [self._header]
        for sequence, section in enumerate(self._sections()):
            parts.append(
                pack_chunk(
                    section.kind,
                    section.payload,
                    count=section.count,
                    sequence=sequence,
                    record_bytes=section.record_bytes,
                    thread=section.thread,
                )
            )
        return b"".join(parts)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the whole file."""
        Path(path).write_bytes(self.bytes())

    def _sections(self) -> Iterator[Section]:
        """Yield what the chunks hold, in the order of the file."""
        limit = self._chunk_bytes
        waits, holds = joined(self._waits, WAIT), joined(self._holds, HOLD)
        if self._meta:
            yield Section(ChunkKind.META, json.dumps(self._meta).encode(), 1)
        yield from varying(ChunkKind.CODES, code_records(self._codes), limit)
        yield from fixed(ChunkKind.FRAMES, frame_records(self._frames), limit)
        yield from varying(ChunkKind.STACKS, stack_records(self._stacks), limit)
        yield from varying(ChunkKind.LOCKS, self._locks, limit)
        yield from varying(ChunkKind.THREADS, list(self._threads.values()), limit)
        yield from fixed(ChunkKind.WAITS, waits, limit)
        yield from fixed(ChunkKind.HOLDS, holds, limit)
        for thread, parts in sorted(self._short_holds.items()):
            yield from fixed(ChunkKind.SHORT_HOLDS, joined(parts, SHORT_HOLD), limit, thread)
        yield from fixed(ChunkKind.GIL, joined(self._gil, GIL_SAMPLE), limit)
        yield from fixed(ChunkKind.LOOP_STEPS, joined(self._steps, LOOP_STEP), limit)
        yield from fixed(ChunkKind.ORDER, joined(self._orders, ORDER), limit)
        yield from fixed(ChunkKind.STATES, joined(self._states, STATE), limit)
        yield from fixed(ChunkKind.LOAD, joined(self._load, LOAD), limit)
        for layer_kind, parts in self._layer.items():
            records = joined(parts, FIXED_RECORDS[layer_kind])
            yield from fixed(layer_kind, records, limit)
        yield from fixed(ChunkKind.COUNTERS, self._counter_records(waits, holds), limit)
        status = _record(STATUS, self._status_values(waits, holds))
        kind = ChunkKind.END if self._complete else ChunkKind.STATUS
        yield from fixed(kind, status, limit)

    def _all_holds(self, holds: Records) -> Records:
        """Return the holds with the short ones among them."""
        short = [(thread, part) for thread, parts in self._short_holds.items() for part in parts]
        return joined_holds([(0, holds), *short])

    def _counter_records(self, waits: Records, holds: Records) -> Records:
        counters = dict(self._counters)
        if self._derive_counters:
            for record in totals(waits, self._all_holds(holds)):
                pair = int(record["lock"]), int(record["thread"])
                counters.setdefault(pair, np.array([record], dtype=COUNTER))
        return joined([counters[pair] for pair in sorted(counters)], COUNTER)

    def _status_values(self, waits: Records, holds: Records) -> dict[str, int]:
        every = self._all_holds(holds)
        ends = [int(records["end_ns"].max()) for records in (waits, every) if len(records)]
        last = max(ends, default=0) if self._duration_ns is None else self._duration_ns
        return {"time_ns": last, "waits": len(waits), "holds": len(every), **self._status}


def _record(dtype: np.dtype[np.void], values: Mapping[str, int]) -> Records:
    """Return one record with the named fields; the rest is 0."""
    record = np.zeros(1, dtype=dtype)
    for name, value in values.items():
        record[name] = value
    return record
