"""Properties of the trace file that hold for any content and any damage."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contention_lab.trace import Trace, TraceBuilder, TraceError, parse
from contention_lab.trace.chunk import pack_chunk, pack_header
from contention_lab.trace.schema import FIXED_RECORDS, MINOR, ChunkKind

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a loaded machine any example may be slow; that is no failure."""


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.integers(0, 5)
times = st.integers(0, 1 << 62)
lines = st.integers(0, (1 << 32) - 1)

frames = st.lists(st.tuples(names, names, lines), max_size=5)
stacks = st.lists(st.lists(ids, max_size=6), max_size=5)
locks = st.lists(st.tuples(names, names, ids), max_size=5)
waits = st.lists(st.tuples(ids, ids, times, times, ids), max_size=20)
holds = st.lists(st.tuples(ids, ids, times, times, ids), max_size=20)


def build(
    frames: list[tuple[str, str, int]],
    stacks: list[list[int]],
    locks: list[tuple[str, str, int]],
    waits: list[tuple[int, int, int, int, int]],
    holds: list[tuple[int, int, int, int, int]],
    chunk_bytes: int,
) -> TraceBuilder:
    builder = TraceBuilder(chunk_bytes=chunk_bytes)
    for function, filename, line in frames:
        builder.add_frame(function, filename, line)
    for stack in stacks:
        builder.add_stack(*stack)
    for lock_type, name, site in locks:
        builder.add_lock(lock_type, name=name, site=site)
    builder.add_thread("one")
    for lock, thread, start, end, stack_id in waits:
        builder.add_wait(lock, thread, start, end, stack=stack_id)
    for lock, thread, start, end, stack_id in holds:
        builder.add_hold(lock, thread, start, end, stack=stack_id)
    return builder


def use(trace: Trace) -> None:
    """Do with a trace what its readers do; nothing of it may raise."""
    assert all(isinstance(problem, str) for problem in trace.problems)
    for lock in trace.locks.values():
        lock.label.encode()
    for stack in trace.stacks:
        trace.stack(stack)
    len(trace.waits), len(trace.holds), len(trace.counters)


@unhurried
@given(frames, stacks, locks, waits, holds, st.sampled_from([1, 100, 1 << 20]))
def test_round_trip(
    frames: list[tuple[str, str, int]],
    stacks: list[list[int]],
    locks: list[tuple[str, str, int]],
    waits: list[tuple[int, int, int, int, int]],
    holds: list[tuple[int, int, int, int, int]],
    chunk_bytes: int,
) -> None:
    trace = parse(build(frames, stacks, locks, waits, holds, chunk_bytes).bytes())

    use(trace)
    assert trace.complete
    fields = ["lock", "thread", "start_ns", "end_ns", "stack"]
    assert [tuple(int(w[f]) for f in fields) for w in trace.waits] == waits
    assert [tuple(int(h[f]) for f in fields) for h in trace.holds] == holds
    assert [(lock.type, lock.name) for lock in trace.locks.values()] == [t[:2] for t in locks]
    known = {(frame.function, frame.filename, frame.line) for frame in trace.frames.values()}
    assert known == set(frames)
    assert set(trace.stacks.values()) == {tuple(stack) for stack in stacks}


@settings(unhurried, max_examples=200)
@given(frames, stacks, locks, waits, holds, st.data())
def test_any_cut_and_any_flipped_bit_loads_or_is_refused(
    frames: list[tuple[str, str, int]],
    stacks: list[list[int]],
    locks: list[tuple[str, str, int]],
    waits: list[tuple[int, int, int, int, int]],
    holds: list[tuple[int, int, int, int, int]],
    data: st.DataObject,
) -> None:
    file = bytearray(build(frames, stacks, locks, waits, holds, 200).bytes())
    at = data.draw(st.integers(0, len(file) - 1), label="damaged byte")
    file[at] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    end = data.draw(st.integers(0, len(file)), label="cut at")
    try:
        trace = parse(bytes(file[:end]))
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    use(trace)


@settings(unhurried, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*map(int, ChunkKind), 0, 99]),
            st.binary(max_size=200),
            st.integers(0, (1 << 32) - 1),
            st.integers(0, 600),
            st.booleans(),
        ),
        max_size=5,
    ),
    st.integers(0, MINOR + 1),
)
def test_chunks_of_nonsense_with_right_checksums_load(
    chunks: list[tuple[int, bytes, int, int, bool]], minor: int
) -> None:
    file = pack_header(start_unix_ns=0, mono_ns=0, pid=0, level=0, clock=0, minor=minor)
    for sequence, (kind, payload, count, size, fitting) in enumerate(chunks):
        if fitting and kind in FIXED_RECORDS:
            size = FIXED_RECORDS[ChunkKind(kind)].itemsize
            payload = np.resize(np.frombuffer(payload + b"\xff", "u1"), 2 * size).tobytes()
            count = 2
        file += pack_chunk(kind, payload, count=count, record_bytes=size, sequence=sequence)

    use(parse(file))
