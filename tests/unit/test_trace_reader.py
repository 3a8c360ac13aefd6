"""Reading trace files: what is written comes back, and nothing hostile gets through."""

from __future__ import annotations

import json
import mmap
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contention_lab.trace import (
    ChunkKind,
    Clock,
    HoldFlag,
    Level,
    Outcome,
    Trace,
    TraceBuilder,
    TraceError,
    load,
    parse,
)
from contention_lab.trace.chunk import pack_chunk, pack_header
from contention_lab.trace.schema import (
    CHUNK,
    COUNTER,
    GIL_SAMPLE,
    HEADER,
    HOLD,
    MINOR,
    STATUS,
    WAIT,
)

if TYPE_CHECKING:
    from pathlib import Path


def example(**options: Any) -> TraceBuilder:
    builder = TraceBuilder(meta={"program": "train.py"}, pid=7, **options)
    backward = builder.add_frame("Client.backward", "/src/client.py", 40, first_line=38)
    train = builder.add_frame("train", "/src/train.py", 12, first_line=3)
    stack = builder.add_stack(backward, train)
    lock = builder.add_lock("SpinLock", name="autodiff server", site=train)
    main = builder.add_thread("MainThread", is_main=True, cpu_ns=500)
    worker = builder.add_thread("worker", start_ns=10, end_ns=900)
    builder.add_hold(lock, main, 100, 300, site=backward, stack=stack, waiters=1)
    builder.add_wait(
        lock,
        worker,
        150,
        310,
        stack=stack,
        holder=main,
        holder_site=backward,
        spin_ns=100,
        park_ns=40,
        gil_ns=10,
    )
    builder.add_short_hold(lock, worker, 400, 20, site=backward)
    return builder


def header(**values: int) -> bytes:
    fields = {"start_unix_ns": 0, "mono_ns": 0, "pid": 1, "level": 1, "clock": 0}
    return pack_header(**{**fields, **values})


def file_of(*chunks: tuple[int, bytes, int, int], minor: int = 0) -> bytes:
    """A file of chunks given as kind, payload, count and record_bytes."""
    return header(minor=minor) + b"".join(
        pack_chunk(kind, payload, count=count, record_bytes=size, sequence=number)
        for number, (kind, payload, count, size) in enumerate(chunks)
    )


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    example(level=Level.TRACE, clock=Clock.TSC, start_unix_ns=5, duration_ns=1000).write(path)

    trace = load(path)

    assert trace.problems == ()
    assert trace.complete
    assert (trace.path, trace.pid, trace.level, trace.clock) == (
        str(path),
        7,
        Level.TRACE,
        Clock.TSC,
    )
    assert (trace.start_unix_ns, trace.duration_ns) == (5, 1000)
    assert trace.meta == {"program": "train.py"}
    (lock,) = trace.locks.values()
    assert (lock.type, lock.name, lock.label, lock.parent, lock.instance) == (
        "SpinLock",
        "autodiff server",
        "autodiff server",
        0,
        1,
    )
    assert lock.site == trace.frames[2]
    assert [frame.function for frame in trace.stack(1)] == ["Client.backward", "train"]
    assert trace.threads[1].is_main
    assert trace.threads[1].cpu_ns == 500
    assert (trace.threads[2].start_ns, trace.threads[2].end_ns) == (10, 900)
    assert trace.waits["gil_ns"].tolist() == [10]
    assert trace.holds["end_ns"].tolist() == [300, 420]
    assert trace.holds["thread"].tolist() == [1, 2]
    assert trace.holds["flags"].tolist() == [0, HoldFlag.UNCONTENDED]
    assert trace.status is not None
    assert int(trace.status["holds"]) == 2


def test_counters_are_derived_from_records_unless_given() -> None:
    builder = example()
    builder.add_counter(1, 2, acquires=9, contended=3)
    counters = parse(builder.bytes()).counters

    assert counters["thread"].tolist() == [1, 2]
    assert counters["acquires"].tolist() == [1, 9]
    assert counters["contended"].tolist() == [0, 3]
    assert counters["hold_ns"].tolist() == [200, 0]
    assert counters["hold_histogram"][0].argmax() == 7  # 2^7 <= 200 < 2^8


def test_derived_counters_tell_outcomes_apart() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(), builder.add_thread()
    for outcome in Outcome:
        builder.add_wait(lock, thread, 0, 10, outcome=outcome)
    (counter,) = parse(builder.bytes()).counters

    assert counter["acquires"] == 1
    assert counter["timed_out"] == 1
    assert counter["failed_tries"] == 1
    assert counter["interrupted"] == 1
    assert counter["contended"] == 4  # not the failed try, and not the one still open
    assert counter["wait_ns"] == 40


def test_records_of_one_chunk_are_a_view_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    builder = TraceBuilder()
    builder.add_hold(builder.add_lock(), builder.add_thread(), 0, 10)
    builder.add_wait(1, 1, 2, 10)
    builder.write(path)
    trace = load(path)

    for records in (trace.waits, trace.holds):
        owner: Any = records
        while isinstance(owner, np.ndarray):
            assert not owner.flags.owndata
            assert not owner.flags.writeable
            owner = owner.base
        assert isinstance(owner, mmap.mmap)


def test_records_of_several_chunks_are_joined_in_order() -> None:
    builder = TraceBuilder(chunk_bytes=200)
    lock, thread = builder.add_lock(), builder.add_thread()
    for start in range(50):
        builder.add_wait(lock, thread, start, start + 5)
        builder.add_hold(lock, thread, start, start + 1)
    trace = parse(builder.bytes())

    assert trace.waits["start_ns"].tolist() == list(range(50))
    assert trace.holds["start_ns"].tolist() == list(range(50))
    assert not trace.waits.flags.writeable
    assert trace.waits is trace.waits


def test_the_last_counter_of_a_lock_and_thread_is_the_truth() -> None:
    def counter(lock: int, thread: int, acquires: int) -> bytes:
        record = np.zeros(1, dtype=COUNTER)
        record["lock"], record["thread"], record["acquires"] = lock, thread, acquires
        return record.tobytes()

    kind, size = ChunkKind.COUNTERS, COUNTER.itemsize
    trace = parse(
        file_of(
            (kind, counter(2, 1, 1) + counter(1, 1, 2), 2, size),
            (kind, counter(2, 1, 10) + counter(1, 2, 3), 2, size),
        )
    )

    found = [(int(c["lock"]), int(c["thread"]), int(c["acquires"])) for c in trace.counters]
    assert found == [(1, 1, 2), (1, 2, 3), (2, 1, 10)]


def test_a_thread_told_twice_is_as_told_last() -> None:
    builder = TraceBuilder(complete=False)
    builder.add_thread("early")
    data = builder.bytes()
    sequence = parse_chunks(data)
    later = TraceBuilder()
    later.add_thread("late", end_ns=99)
    (payload,) = [p for kind, p in chunk_payloads(later.bytes()) if kind == ChunkKind.THREADS]
    trace = parse(data + pack_chunk(ChunkKind.THREADS, payload, count=1, sequence=sequence))

    assert trace.threads[1].name == "late"
    assert trace.threads[1].end_ns == 99


def parse_chunks(data: bytes) -> int:
    return len(chunk_payloads(data))


def chunk_payloads(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    at = HEADER.itemsize
    while at < len(data):
        head = np.frombuffer(data, dtype=CHUNK, count=1, offset=at)[0]
        size = int(head["payload_bytes"])
        begin = at + CHUNK.itemsize
        found.append((int(head["kind"]), data[begin : begin + size]))
        at = begin + size + -size % 8
    return found


def test_locks_of_one_site_are_numbered_in_the_order_of_creation() -> None:
    builder = TraceBuilder()
    here, there = builder.add_frame("f", "a.py", 1), builder.add_frame("g", "pool/__init__.py", 2)
    for site in (here, there, here, 0, 0, here):
        builder.add_lock("threading.Lock", site=site)
    locks = parse(builder.bytes()).locks

    assert [locks[i].instance for i in range(1, 7)] == [1, 1, 2, 1, 2, 3]
    assert locks[1].label == "a:f:1"
    assert locks[2].label == "pool:g:2"
    assert locks[4].label == "lock #4"


def test_truncated_stacks_are_known() -> None:
    builder = TraceBuilder()
    frame = builder.add_frame("f", "a.py", 1)
    whole, cut = builder.add_stack(frame), builder.add_stack(frame, truncated=True)
    trace = parse(builder.bytes())

    assert trace.truncated_stacks == {cut}
    assert trace.stacks == {whole: (frame,), cut: (frame,)}


def test_an_unfinished_file_lasts_until_its_last_event_and_says_it_has_no_end() -> None:
    builder = TraceBuilder(complete=False)
    builder.add_wait(builder.add_lock(), builder.add_thread(), 10, 500)
    trace = parse(builder.bytes())

    assert not trace.complete
    assert trace.duration_ns == 500
    assert trace.status is not None
    assert any("has no end" in problem for problem in trace.problems)


def test_meta_of_later_chunks_replaces_key_by_key() -> None:
    def meta(value: Any) -> tuple[int, bytes, int, int]:
        return ChunkKind.META, json.dumps(value).encode(), 1, 0

    trace = parse(file_of(meta({"a": 1, "b": {"x": 1}}), meta({"b": 2})))

    assert trace.meta == {"a": 1, "b": 2}


# Files that are refused


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 not a trace at all" * 10, "is not a contention-lab trace"),
        (b"\x89CLT\n", "is not a contention-lab trace"),
        (header()[:3], "is cut after 3 bytes"),
        (header()[:63], "is cut after 63 bytes"),
        (header(major=2, minor=3), "is of format 2.3"),
        (header(major=0), "no version has written"),
        (header()[:20] + b"\x01" + header()[21:], "damaged header"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "odd.clt"
    path.write_bytes(data)

    with pytest.raises(TraceError) as caught:
        load(path)

    message = str(caught.value)
    assert says in message
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.clt", tmp_path, "nul\0byte"):
        with pytest.raises(TraceError, match="cannot be read"):
            load(path)


# Files that are damaged


def test_every_prefix_loads_or_is_refused() -> None:
    data = example().bytes()
    seen = []
    for length in range(len(data)):
        try:
            trace = parse(data[:length])
        except TraceError:
            assert length < HEADER.itemsize
            continue
        seen.append(touch(trace))
        assert not trace.complete
        assert trace.problems
    # Nothing that was there is forgotten when more is there.
    assert all(before <= after for before, after in pairwise(seen))
    assert seen[-1] > 0


def test_every_flipped_byte_loads_or_is_refused() -> None:
    data = example().bytes()
    whole = touch(parse(data))
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x5A
        try:
            trace = parse(bytes(damaged))
        except TraceError:
            assert at < HEADER.itemsize
            continue
        assert at >= HEADER.itemsize
        assert touch(trace) <= whole
        if touch(trace) < whole:
            assert any("byte" in problem for problem in trace.problems)


def touch(trace: Trace) -> int:
    """Use everything; return how many records there are."""
    for lock in trace.locks.values():
        assert lock.label
    for stack in trace.stacks:
        trace.stack(stack)
    return (
        len(trace.waits) + len(trace.holds) + len(trace.counters) + len(trace.locks)
        + len(trace.threads) + len(trace.frames) + len(trace.stacks)
    )  # fmt: skip


def test_damage_is_located_and_what_came_before_is_kept() -> None:
    data = bytearray(example().bytes())
    (waits,) = [p for kind, p in chunk_payloads(bytes(data)) if kind == ChunkKind.WAITS]
    at = bytes(data).index(waits)
    data[at] ^= 1
    trace = parse(bytes(data))

    assert len(trace.waits) == 0
    assert set(trace.locks) == {1}
    assert any(
        f"at byte {at - CHUNK.itemsize} has a wrong checksum" in problem
        for problem in trace.problems
    )


def test_a_missing_chunk_in_the_middle_stops_the_reader() -> None:
    chunk = pack_chunk(ChunkKind.META, b"{}", count=1, sequence=1)
    trace = parse(header() + chunk)

    assert "calls itself number 1" in trace.problems[0]


def test_a_payload_too_large_to_be_true_is_not_read() -> None:
    chunk = np.frombuffer(pack_chunk(ChunkKind.META, b"{}", count=1, sequence=0), "u1").copy()
    chunk[8:12] = 0xFF
    trace = parse(header() + chunk.tobytes())

    assert "claims 4294967295 bytes" in trace.problems[0]


# Chunks whose checksum is right and whose content is not


WAIT_BYTES = np.zeros(1, dtype=WAIT).tobytes()


@pytest.mark.parametrize(
    ("chunk", "says"),
    [
        ((ChunkKind.WAITS, WAIT_BYTES, 2, 96), "has 96 bytes, not 2 records of 96"),
        ((ChunkKind.WAITS, WAIT_BYTES[:72], 1, 72), "has records of 72 bytes instead of 96"),
        (
            (ChunkKind.WAITS, WAIT_BYTES + bytes(8), 1, 104),
            "has records of 104 bytes instead of 96",
        ),
        ((ChunkKind.META, b"{", 1, 0), "is not JSON"),
        ((ChunkKind.META, b"[" * 100_000, 1, 0), "is not JSON"),
        ((ChunkKind.META, b"[]", 1, 0), "is JSON, but not an object"),
        ((ChunkKind.META, b'{"a": "\xff"}', 1, 0), "is not JSON"),
        ((ChunkKind.STACKS, struct.pack("<III", 1, 2, 1), 1, 0), "ends inside stack number 0"),
        ((ChunkKind.STACKS, struct.pack("<II", 1, 0x7FFFFFFF), 1, 0), "ends inside stack"),
        ((ChunkKind.STACKS, struct.pack("<IIB", 1, 0, 9), 1, 0), "bytes after its last stack"),
        ((ChunkKind.STACKS, struct.pack("<II", 1, 0), 3, 0), "holds 1 records and claims 3"),
        ((ChunkKind.LOCKS, struct.pack("<IIIIII", 1, 0, 0, 0, 9, 9), 1, 0), "ends inside record"),
        ((ChunkKind.LOCKS, struct.pack("<III", 1, 0, 0), 1, 0), "ends inside record number 0"),
        ((ChunkKind.CODES, struct.pack("<IIII", 1, 0, 1 << 31, 0), 1, 0), "ends inside record"),
        ((77, b"", 0, 0), "is of no kind that this format knows"),
    ],
)
def test_a_chunk_that_contradicts_itself_is_left_out(
    chunk: tuple[int, bytes, int, int], says: str
) -> None:
    sound = (ChunkKind.META, b'{"sound": true}', 1, 0)
    trace = parse(file_of(chunk, sound))

    assert says in trace.problems[0]
    assert len(trace.waits) == 0
    assert trace.meta == {"sound": True}


def test_a_newer_minor_version_may_append_fields_and_kinds() -> None:
    record = np.zeros(2, dtype=WAIT)
    record["lock"] = [5, 6]
    wide = b"".join(item.tobytes() + b"12345678" for item in record)
    trace = parse(file_of((ChunkKind.WAITS, wide, 2, 104), (99, b"new", 1, 0), minor=MINOR + 1))

    assert trace.waits.dtype == WAIT
    assert trace.waits["lock"].tolist() == [5, 6]
    assert not any("chunk" in problem for problem in trace.problems)


def test_a_level_this_version_does_not_know_is_told() -> None:
    trace = parse(header(level=9, clock=8))

    assert (trace.level, trace.clock) == (Level.PROFILE, Clock.MONOTONIC)
    assert any("level 9" in problem for problem in trace.problems)


def test_records_after_the_end_are_left_out() -> None:
    end = (ChunkKind.END, np.zeros(1, dtype=STATUS).tobytes(), 1, STATUS.itemsize)
    trace = parse(file_of(end, (ChunkKind.META, b'{"late": 1}', 1, 0)))

    assert trace.complete
    assert trace.meta == {}
    assert "comes after the end" in trace.problems[0]


def test_records_that_cannot_be_true_are_kept_and_counted() -> None:
    builder = TraceBuilder(duration_ns=100)
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, thread, 50, 40)
    builder.add_wait(lock, thread, 0, 10, gil_ns=11)
    builder.add_wait(lock, thread, 0, 10, outcome=200)
    builder.add_wait(77, 78, 0, 10, stack=79, holder=80, holder_site=81)
    builder.add_wait(lock, thread, 0, 1 << 63)
    builder.add_hold(lock, thread, 50, 40)
    builder.add_hold(0, thread, 50, 60)
    builder.add_short_hold(lock, 9, 0, 1)
    trace = parse(builder.bytes())

    assert len(trace.waits) == 5
    assert len(trace.holds) == 3
    assert trace.duration_ns == 100
    assert set(trace.problems) >= {
        "1 waits end before they start",
        "1 waits are longer for the GIL than as a whole",
        "1 waits have an outcome or a kind this version does not know",
        "1 waits have a lock the file does not define",
        "1 waits have a thread the file does not define",
        "1 waits have a stack the file does not define",
        "1 waits have a holder the file does not define",
        "1 waits have a holder_site the file does not define",
        "1 waits have impossible times",
        "1 holds end before they start",
        "1 holds name no lock",
        "1 holds have a thread the file does not define",
    }
    assert trace.lock(77).label == "lock #77"
    assert trace.thread(78).label == "thread #78"
    assert trace.stack(79) == ()


def test_ids_are_checked_without_a_table_as_large_as_the_largest() -> None:
    lock = struct.pack("<IIIIII", 0xFFFF_FFFF, 0, 0, 0, 0, 0)
    waits = np.zeros(3, dtype=WAIT)
    waits["lock"] = [0xFFFF_FFFF, 0xFFFF_FFFE, 1]
    trace = parse(file_of((ChunkKind.LOCKS, lock, 1, 0), (ChunkKind.WAITS, waits.tobytes(), 3, 96)))

    assert "2 waits have a lock the file does not define" in trace.problems


def test_ids_that_are_taken_or_zero_are_left_out() -> None:
    def lock(number: int, name: bytes, parent: int = 0) -> bytes:
        return struct.pack("<IIIIII", number, 0, parent, 0, 0, len(name)) + name

    payload = lock(1, b"first") + lock(1, b"second") + lock(0, b"zero")
    trace = parse(file_of((ChunkKind.LOCKS, payload, 3, 0)))

    assert [known.name for known in trace.locks.values()] == ["first"]
    assert "2 locks have the id 0 or one that is taken" in trace.problems


def test_parents_in_a_circle_are_cut() -> None:
    def lock(number: int, parent: int) -> bytes:
        return struct.pack("<IIIIII", number, 0, parent, 0, 0, 0)

    payload = lock(1, 2) + lock(2, 3) + lock(3, 1) + lock(4, 4) + lock(5, 1) + lock(6, 99)
    trace = parse(file_of((ChunkKind.LOCKS, payload, 6, 0)))

    for known in trace.locks.values():
        steps = 0
        while known.parent:
            known = trace.locks[known.parent]
            steps += 1
            assert steps <= 6
    assert trace.locks[5].parent == 1
    assert "2 locks are their own ancestors" in trace.problems
    assert "1 locks have a parent the file does not define" in trace.problems


def test_names_can_always_be_printed() -> None:
    builder = TraceBuilder(meta={"argv": ["\udcff"]})
    builder.add_lock("Mutex", name="caf\udce9")
    builder.add_thread("Grüße")
    trace = parse(builder.bytes())

    for text in (trace.locks[1].name, trace.meta["argv"][0], trace.threads[1].name):
        text.encode("utf-8")
    assert trace.locks[1].name == "caf\\xed\\xb3\\xa9"
    assert trace.threads[1].name == "Grüße"


def test_a_frame_without_code_and_a_stack_without_frame_are_told() -> None:
    frame = struct.pack("<IIII", 1, 55, 3, 0)
    stack = struct.pack("<IIII", 1, 2, 1, 7)
    trace = parse(file_of((ChunkKind.FRAMES, frame, 1, 16), (ChunkKind.STACKS, stack, 1, 0)))

    assert trace.frames == {}
    assert trace.stack(1) == ()
    assert "1 frames refer to code objects the file does not define" in trace.problems
    assert "1 stacks refer to frames the file does not define" in trace.problems


def test_hold_records_keep_their_place_among_short_holds() -> None:
    builder = example()
    builder.add_hold(1, 1, 500, 600)
    holds = parse(builder.bytes()).holds

    assert holds.dtype == HOLD
    assert holds["start_ns"].tolist() == [100, 500, 400]


def test_samples_of_the_gil_are_not_taken_for_the_recorders_status() -> None:
    samples = np.zeros(3, dtype=GIL_SAMPLE)
    samples["time_ns"] = [1, 2, 3]
    status = np.zeros(1, dtype=STATUS)
    status["time_ns"] = 77
    chunks = (ChunkKind.STATUS, status.tobytes(), 1, 96), (ChunkKind.GIL, samples.tobytes(), 3, 16)
    trace = parse(file_of(*chunks))

    assert trace.gil["time_ns"].tolist() == [1, 2, 3]
    assert trace.status is not None
    assert trace.status["time_ns"] == 77
    assert not trace.complete
