"""Load a `.clt` file into a `Trace`.

It never writes, and it never trusts: a file that is cut or damaged gives what came before the
damage, and says so in `Trace.problems`; a file that is no trace is refused in one line. The file
is mapped, so records are read from disk when they are used. A mapped file must not be shortened
while its trace is in use; appending, as a recorder does, is harmless.
"""

from __future__ import annotations

import mmap
import zlib
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from contention_lab.trace.checks import Checks
from contention_lab.trace.chunk import chunks
from contention_lab.trace.gil_runs import holds_of
from contention_lab.trace.mapped import let_go
from contention_lab.trace.model import Trace, TraceError
from contention_lab.trace.native import NativeTables, is_native
from contention_lab.trace.schema import (
    EVENT_KINDS,
    FIXED_RECORDS,
    HEADER,
    MAGIC,
    MAJOR,
    MINOR,
    ChunkKind,
    Clock,
    Level,
)
from contention_lab.trace.tables import Tables
from contention_lab.trace.variables import name_locks
from contention_lab.trace.varied import MalformedError

if TYPE_CHECKING:
    import os

    from contention_lab.trace.chunk import Chunk
    from contention_lab.trace.records import Records

Choice = TypeVar("Choice", bound=IntEnum)

RECORD: Final = "make it again with contention_lab.record()"


def load(path: str | os.PathLike[str]) -> Trace:
    """Load a trace file.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Trace
        Up to the first damage, if there is any; see `Trace.problems`. Locks have the names of
        variables, where the program's sources are there and older than the recording.

    Raises
    ------
    TraceError
        The file cannot be opened, is no trace, was made by a newer version, or is damaged in its
        first 64 bytes.

    Of a program that is not Python, calls have the lines that its file knows, where that still is
    the file that was recorded.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            try:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except ValueError:  # an empty file cannot be mapped
                data = memoryview(b"")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TraceError(f"{name}: cannot be read ({reason}); check the path") from error
    trace = _parse(data, name, with_lines=True)
    program = trace.meta.get("program")
    return replace(trace, locks=name_locks(trace.locks, trace.start_unix_ns, program))


def parse(data: bytes | memoryview, path: str = "<memory>") -> Trace:
    """Read a trace from memory.

    Parameters
    ----------
    data
        The bytes of a trace file.
    path
        What to call it.

    Raises
    ------
    TraceError
        As `load`.
    """
    return _parse(data, path, with_lines=False)


def _parse(data: bytes | memoryview, path: str, *, with_lines: bool) -> Trace:
    data = memoryview(data)
    header = _header(data, path)
    content = _Content(newer=int(header["minor"]) > MINOR)
    for chunk in chunks(data, int(header["header_bytes"]), content.problems):
        content.add(chunk)
        let_go(chunk.payload)
    return content.trace(path, header, with_lines=with_lines)


def _header(data: memoryview, path: str) -> np.void:
    """Return the header of a file this version can read."""
    magic = bytes(data[: len(MAGIC)])
    if not magic:
        raise TraceError(f"{path}: is empty; {RECORD}")
    if magic != MAGIC[: len(magic)]:
        raise TraceError(f"{path}: is not a contention-lab trace (wrong first bytes); {RECORD}")
    if len(data) < HEADER.itemsize:
        raise TraceError(
            f"{path}: is cut after {len(data)} bytes, inside the header of "
            f"{HEADER.itemsize}; {RECORD}"
        )
    header: np.void = np.frombuffer(data, dtype=HEADER, count=1)[0]
    checked = bytes(data[: HEADER.itemsize - 4])
    if int(header["major"]) > MAJOR:
        raise TraceError(
            f"{path}: is of format {header['major']}.{header['minor']}, and this version reads "
            f"{MAJOR}.x; install a newer contention-lab"
        )
    if zlib.crc32(checked) != int(header["crc32"]):
        raise TraceError(f"{path}: has a damaged header (wrong checksum); {RECORD}")
    if int(header["major"]) < MAJOR or int(header["header_bytes"]) < HEADER.itemsize:
        raise TraceError(
            f"{path}: has a header no version has written (format {header['major']}, "
            f"{header['header_bytes']} bytes); {RECORD}"
        )
    return header


class _Content:
    """What the chunks read so far hold."""

    def __init__(self, *, newer: bool) -> None:
        self.problems: list[str] = []
        self._left_out: dict[str, list[str]] = {}
        self._newer = newer
        self._tables = Tables()
        self._waits: list[Records] = []
        self._holds: list[tuple[int, Records]] = []
        self._counters: list[Records] = []
        self._gil: list[Records] = []
        self._orders: list[Records] = []
        self._states: list[Records] = []
        self._load: list[Records] = []
        self._steps: list[Records] = []
        self._layer: dict[ChunkKind, list[Records]] = {kind: [] for kind in EVENT_KINDS}
        self._native = NativeTables()
        self._beats: list[Records] = []
        self._status: np.void | None = None
        self._complete = False

    def add(self, chunk: Chunk) -> None:
        """Take in one chunk; one that contradicts itself is told and left out."""
        try:
            if self._complete:
                raise MalformedError("comes after the end of the recording")
            if chunk.kind in FIXED_RECORDS:
                self._add_records(chunk, self._records(chunk))
            elif chunk.kind == ChunkKind.META:
                self._tables.add_meta(chunk)
            elif chunk.kind == ChunkKind.CODES:
                self._tables.add_codes(chunk)
            elif chunk.kind == ChunkKind.STACKS:
                self._tables.add_stacks(chunk)
            elif chunk.kind == ChunkKind.LOCKS:
                self._tables.add_locks(chunk)
            elif chunk.kind == ChunkKind.NATIVE_LOCKS:
                self._native.add_locks(chunk)
            elif chunk.kind == ChunkKind.NATIVE_FRAMES:
                self._native.add_frames(chunk)
            elif chunk.kind == ChunkKind.NATIVE_STACKS:
                self._native.add_stacks(chunk)
            elif chunk.kind == ChunkKind.NATIVE_IMAGES:
                self._native.add_images(chunk)
            elif chunk.kind == ChunkKind.THREADS:
                self._tables.add_threads(chunk)
            elif not self._newer:
                raise MalformedError("is of no kind that this format knows")
        except MalformedError as error:
            self._left_out.setdefault(f"{error}; it is left out from there", []).append(chunk.label)

    def trace(self, path: str, header: np.void, *, with_lines: bool) -> Trace:
        """Return the trace made of the header and the chunks."""
        tables = self._tables
        if with_lines and is_native(tables.meta):
            self._native.look_up(tables.calls(), str(tables.meta["python"].get("executable")))
        frames = tables.frames(self._native.places, native=is_native(tables.meta))
        locks = tables.locks(frames)
        checks = Checks(locks=locks, threads=tables.threads, frames=frames, stacks=tables.stacks)
        for records in self._waits:
            checks.waits(records)
            let_go(records)
        for thread, records in self._holds:
            checks.holds(thread, records)
            let_go(records)
        for records in self._counters:
            checks.counters(records)
        for records in self._orders:
            checks.orders(records)
        for kind, chunked in self._layer.items():
            for records in chunked:
                checks.layer(kind, records)
        for what, labels in self._left_out.items():
            others = f" (and {len(labels) - 1} more likewise)" if len(labels) > 1 else ""
            self.problems.append(f"{labels[0]} {what}{others}")
        for known in tables.threads.values():
            checks.event(known.start_ns)
            checks.event(known.end_ns)
        if self._status is not None:
            checks.event(int(self._status["time_ns"]))
        if not self._complete:
            self.problems.append(
                "the recording has no end: it goes on, its process was killed, or the file is cut"
            )
        level = _choice(Level, int(header["level"]), Level.PROFILE, self.problems)
        clock = _choice(Clock, int(header["clock"]), Clock.MONOTONIC, self.problems)
        return Trace(
            path=path,
            pid=int(header["pid"]),
            level=level,
            clock=clock,
            start_unix_ns=int(header["start_unix_ns"]),
            start_mono_ns=int(header["mono_ns"]),
            duration_ns=checks.last_event_ns,
            meta=tables.meta,
            locks=locks,
            threads=tables.threads,
            frames=frames,
            stacks=tables.stacks,
            truncated_stacks=frozenset(tables.truncated_stacks),
            status=self._status,
            complete=self._complete,
            problems=(
                *self.problems,
                *tables.problems(),
                *self._native.problems(),
                *checks.problems(),
            ),
            wait_chunks=tuple(self._waits),
            hold_chunks=tuple(self._holds),
            counter_chunks=tuple(self._counters),
            gil_chunks=tuple(self._gil),
            order_chunks=tuple(self._orders),
            state_chunks=tuple(self._states),
            load_chunks=tuple(self._load),
            step_chunks=tuple(self._steps),
            beat_chunks=tuple(self._beats),
            layer_chunks=self._layer,
            native=self._native,
        )

    def _records(self, chunk: Chunk) -> Records:
        """Return the records of a chunk as a view of the file."""
        dtype = FIXED_RECORDS[ChunkKind(chunk.kind)]
        size = chunk.record_bytes
        if size < dtype.itemsize or (size > dtype.itemsize and not self._newer):
            raise MalformedError(f"has records of {size} bytes instead of {dtype.itemsize}")
        if size * chunk.count != len(chunk.payload):
            raise MalformedError(
                f"has {len(chunk.payload)} bytes, not {chunk.count} records of {size}"
            )
        if not chunk.count:
            return np.empty(0, dtype=dtype)
        # A newer minor version may have appended fields: step over them.
        return np.ndarray(chunk.count, dtype=dtype, buffer=chunk.payload, strides=(size,))

    def _add_records(self, chunk: Chunk, records: Records) -> None:
        if chunk.kind == ChunkKind.FRAMES:
            self._tables.add_frames(records)
        elif chunk.kind == ChunkKind.WAITS:
            self._waits.append(records)
        elif chunk.kind in (ChunkKind.HOLDS, ChunkKind.SHORT_HOLDS):
            self._holds.append((chunk.thread, records))
        elif chunk.kind == ChunkKind.COUNTERS:
            self._counters.append(records)
        elif chunk.kind == ChunkKind.GIL:
            self._gil.append(records)
        elif chunk.kind == ChunkKind.ORDER:
            self._orders.append(records)
        elif chunk.kind == ChunkKind.STATES:
            self._states.append(records)
        elif chunk.kind == ChunkKind.LOAD:
            self._load.append(records)
        elif chunk.kind == ChunkKind.LOOP_STEPS:
            self._steps.append(records)
        elif chunk.kind == ChunkKind.GIL_RUNS:
            self._layer[ChunkKind.GIL_HOLDS].append(holds_of(records))
        elif chunk.kind in EVENT_KINDS:
            self._layer[ChunkKind(chunk.kind)].append(records)
        elif chunk.kind in (ChunkKind.STATUS, ChunkKind.END) and len(records):
            self._beats.append(records)
            self._status = records[-1]
            self._complete = chunk.kind == ChunkKind.END


def _choice(kind: type[Choice], value: int, default: Choice, problems: list[str]) -> Choice:
    try:
        return kind(value)
    except ValueError:
        problems.append(
            f"the header names {kind.__name__.lower()} {value}, which this version does not "
            f"know; {default.name.lower()} is assumed"
        )
        return default
