"""`contention-lab top`: order, choice and form of the table of locks."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from native_scene import NativeScene

from contention_lab.cli import main
from contention_lab.trace import ChunkKind, Level, TraceBuilder
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    builder = TraceBuilder(
        meta={"not_seen": [{"what": "threading.Lock", "why": "made before", "count": 7}]}
    )
    made = builder.add_frame("make", "/src/app.py", 3)
    main_thread = builder.add_thread("MainThread")
    worker = builder.add_thread("worker")
    for wait_ms, acquires in ((1, 30), (2, 20)):
        lock = builder.add_lock("threading.Lock", site=made)
        builder.add_wait(lock, worker, 0, wait_ms * MS, holder=main_thread)
        builder.add_counter(lock, worker, acquires=acquires, contended=1, wait_ns=wait_ms * MS)
    named = builder.add_lock("Mutex", name="=ledger")
    builder.add_counter(named, main_thread, acquires=100)
    builder.write(tmp_path / "run.clt")
    return tmp_path / "run.clt"


def _rows(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    assert main(["top", str(path), "-x,", *arguments]) == 0
    return list(csv.reader(io.StringIO(capsys.readouterr().out)))


def test_locks_of_a_place_are_one_row(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *rows = _rows(path, capsys)

    of = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert of["app:make:3"]["locks"] == "2"
    assert float(of["app:make:3"]["wait_s"]) == pytest.approx(0.003)
    assert of["app:make:3"]["made"] == "/src/app.py:3"
    assert int(of["=ledger"]["acquires"]) == 100


def test_instances_are_told_apart_if_asked(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *rows = _rows(path, capsys, "--instances")

    assert len(rows) == 3
    assert [row[head.index("instance")] for row in rows[:2]] == ["2", "1"]


@pytest.mark.parametrize(
    ("column", "first"), [("wait", "app:make:3"), ("ACQUIRES", "=ledger"), ("lock", "=ledger")]
)
def test_it_is_ordered_by_any_column(
    path: Path, capsys: pytest.CaptureFixture[str], column: str, first: str
) -> None:
    assert _rows(path, capsys, "-s", column)[1][0] == first
    assert _rows(path, capsys, "-s", column, "-r")[-1][0] == first


def test_it_shows_what_matches(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row[0] for row in _rows(path, capsys, "--lock", "LEDGER")[1:]] == ["=ledger"]
    assert [row[0] for row in _rows(path, capsys, "--thread", "worker")[1:]] == ["app:make:3"]
    assert _rows(path, capsys, "--stack", "nowhere")[1:] == []


def test_what_was_not_recorded_is_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(path)]) == 0
    assert "not recorded: 7 times threading.Lock: made before" in capsys.readouterr().err


def test_a_long_separator_is_a_mistake(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(path), "-x", "; "]) == 2
    assert "give one character" in capsys.readouterr().err


@pytest.mark.parametrize("level", [*Level])
def test_what_a_level_does_not_record_is_absent_and_not_zero(
    level: Level, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = TraceBuilder(level=level)
    lock, thread = builder.add_lock("Mutex", name="ledger"), builder.add_thread("worker")
    builder.add_counter(lock, thread, acquires=4, contended=2, wait_ns=3 * MS, max_wait_ns=2 * MS)
    builder.write(tmp_path / "run.clt")

    head, row = _rows(tmp_path / "run.clt", capsys)
    figures = dict(zip(head, row, strict=True))
    assert main(["top", str(tmp_path / "run.clt")]) == 0
    names, line = capsys.readouterr().out.splitlines()
    absent = level == Level.COUNTERS
    for name in ("wait_p50_s", "wait_p99_s", "hold_s", "utilisation"):
        assert (figures[name] == "") == absent
    assert float(figures["wait_max_s"]) == pytest.approx(0.002)
    assert float(figures["wait_s"]) == pytest.approx(0.003)
    assert line.count("\N{EN DASH}") == 4 * absent
    assert names.split()[0] == "lock"


def test_the_gil_is_a_row_where_every_wait_is_known(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    worker = builder.add_thread("worker")
    builder.add_layer_event(
        ChunkKind.GIL_TOTALS, thread=worker, waits=3, wait_ns=9 * MS, holds=5, held_ns=60 * MS
    )
    builder.write(tmp_path / "gil.clt")

    [head, row] = _rows(tmp_path / "gil.clt", capsys, "--lock", "gil")
    of = dict(zip(head, row, strict=True))

    assert (of["lock"], of["acquires"], of["contended"]) == ("GIL", "5", "3")
    assert (float(of["wait_s"]), float(of["utilisation"])) == pytest.approx((0.009, 0.6))
    assert [row[0] for row in _rows(path, capsys) if row[0] == "GIL"] == []


def test_locks_of_native_code_are_rows_with_spinning_apart_from_parking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = NativeScene()
    python = "/lib/libpython3.14t.so.1.0"
    slow = scene.native_stack(("_PyCriticalSection_BeginSlow", python), ("list_append", python))
    spun = scene.lock(NativeKind.YIELD, "_PyMutex_LockTimed", python)
    slept = scene.lock(NativeKind.SEMAPHORE, "_PySemaphore_Wait", python)
    ready = scene.lock(NativeKind.COND, "wait_for_work", "/lib/libpool.so")
    worker = scene.thread("worker")
    scene.wait(spun, worker, 0, 2, native_stack=slow)
    scene.wait(slept, worker, 2, 8, native_stack=slow)
    scene.wait(ready, worker, 10, 90)
    (tmp_path / "native.clt").write_bytes(scene.bytes())

    [head, row] = _rows(tmp_path / "native.clt", capsys)
    of = dict(zip(head, row, strict=True))
    assert of["lock"] == "the list's own lock"
    figures = [float(of[name]) for name in ("wait_s", "spin_s", "park_s", "wait_max_s")]
    assert figures == pytest.approx([0.008, 0.002, 0.006, 0.006])
    assert [of[name] for name in ("contended", "acquires", "hold_s")] == ["2", "", ""]
    assert main(["top", str(tmp_path / "native.clt")]) == 0
    said = capsys.readouterr().err
    assert "the list's own lock: waited for 2.0 ms spinning (sched_yield) and 6.0 ms parked" in said
    assert _rows(tmp_path / "native.clt", capsys, "--lock", "nowhere")[1:] == []


def test_rows_of_native_locks_are_of_the_threads_and_frames_that_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = NativeScene()
    python, sqlite = "/usr/bin/python3.14", "/usr/lib/libsqlite3.so.0"
    slow = scene.native_stack(("_PyCriticalSection_BeginSlow", python), ("list_append", python))
    short = scene.native_stack(("_PySemaphore_Wait", python))
    step = scene.native_stack(("sqlite3_step", sqlite))
    slept = scene.lock(NativeKind.SEMAPHORE, "_PySemaphore_Wait", python)
    mutex = scene.lock(NativeKind.MUTEX, "sqlite3_step", sqlite)
    reader, writer = scene.thread("reader-1"), scene.thread("writer-1")
    collect, store = scene.stack("collect", 10), scene.stack("store", 20)
    scene.wait(slept, reader, 0, 2, native_stack=short, stack=store)
    scene.wait(slept, reader, 3, 6, native_stack=slow, stack=collect)
    scene.wait(slept, writer, 0, 7, native_stack=slow, stack=collect)
    scene.wait(mutex, writer, 10, 20, native_stack=step, stack=store)
    scene.wait(mutex, 0, 30, 31, native_stack=step, native_id=reader)
    path = tmp_path / "native.clt"
    path.write_bytes(scene.bytes())

    def found(*options: str) -> dict[str, tuple[float, str]]:
        head, *rows = _rows(path, capsys, *options)
        of = [dict(zip(head, row, strict=True)) for row in rows]
        sums: dict[str, tuple[float, str]] = {}
        for row in of:
            ms = round(float(row["wait_s"]) * 1e3, 6) + sums.get(row["lock"], (0.0, ""))[0]
            sums[row["lock"]] = (ms, row["threads"])
        return sums

    appended, stored = "the list's own lock", "a lock inside libsqlite3 (sqlite3_step)"
    assert found("--thread", "READER") == {appended: (5, "1"), stored: (1, "1")}
    assert found("--thread", "writer") == {appended: (7, "1"), stored: (10, "1")}
    assert found("--stack", "store") == {appended: (2, "1"), stored: (10, "1")}
    assert found("--stack", "collect") == {appended: (10, "2")}
    assert found("--stack", "list_append")[appended][0] == 12
    assert found("--stack", "libsqlite3", "--thread", "reader") == {stored: (1, "1")}
    assert found("--thread", "nobody") == found("--stack", "nowhere") == {}


def test_a_native_wait_within_a_recorded_one_is_no_row_of_its_own_whatever_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = NativeScene()
    reader = scene.thread("reader-1")
    lock = scene.builder.add_lock("Lock", name="cache")
    scene.builder.add_wait(lock, reader, 0, 9 * MS)
    scene.wait(scene.lock(NativeKind.MUTEX, "take", "/lib/libstore.so"), reader, 1, 8)
    (tmp_path / "within.clt").write_bytes(scene.bytes())

    for options in ((), ("--lock", "libstore"), ("--thread", "reader"), ("--stack", "take")):
        names = [row[0] for row in _rows(tmp_path / "within.clt", capsys, *options)[1:]]
        assert not [name for name in names if "libstore" in name]
