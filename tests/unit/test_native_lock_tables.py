"""Native locks and stacks come back from a file, and are summed up by lock."""

from __future__ import annotations

import pytest
from native_scene import MS, NativeScene, named, stacks, trace_of

from contention_lab.analysis.native_blame import blamed_releases
from contention_lab.analysis.native_identity import library_name, native_identity
from contention_lab.analysis.native_locks import native_locks
from contention_lab.trace import ChunkKind, Trace, TraceBuilder, WaitKind
from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeFrame, NativeKind, NativeLock

PYTHON = "/lib/libpython3.13.so.1.0"


@pytest.fixture
def sqlite() -> Trace:
    """Return a trace of two threads that wait for a mutex in a library, and one that is joined."""
    builder = TraceBuilder()
    thread = builder.add_thread("worker")
    query = builder.add_stack(builder.add_frame("query", "/app/service.py", 7))
    common = {"thread": thread, "native_id": 11}
    add = builder.add_layer_event
    kind = ChunkKind.NATIVE_WAITS
    add(kind, lock=1, start_ns=0, end_ns=4 * MS, stack=query, native_stack=1, **common)
    add(kind, lock=1, start_ns=5 * MS, end_ns=6 * MS, native_id=12)
    release = int(NativeWaitFlag.RELEASE)
    add(kind, lock=1, start_ns=4 * MS, end_ns=4 * MS, flags=release, native_stack=1, **common)
    add(kind, lock=2, start_ns=0, end_ns=9 * MS, native_stack=2, **common)
    add(kind, lock=3, start_ns=0, end_ns=2 * MS, **common)
    locks = [
        named(1, NativeKind.MUTEX, 0x1000, "sqlite3_step", "/lib/libsqlite3.so.0"),
        named(2, NativeKind.SEMAPHORE, 0x2000, "x", "/lib/libpython3.13.so.1.0"),
        named(3, NativeKind.COND, 0x3000, "", "/lib/library.so"),
    ]
    frames = [
        named(1, 0, 0x10, "sqlite3_step", "/lib/libsqlite3.so.0"),
        named(2, 1, 0x20, "PyInit__sqlite3", "/lib/_sqlite3.so"),
        named(3, 0, 0x30, "_PyMutex_LockSlow", "/lib/libpython3.13.so.1.0"),
        named(4, 0, 0x40, "", ""),
    ]
    return trace_of(
        builder,
        (ChunkKind.NATIVE_LOCKS, b"".join(locks), 3),
        (ChunkKind.NATIVE_FRAMES, b"".join(frames), 4),
        (ChunkKind.NATIVE_STACKS, stacks([1, 2], [4, 3]), 2),
    )


def test_locks_and_stacks_come_back(sqlite: Trace) -> None:
    assert sqlite.problems == ()
    assert sqlite.native.locks[1].label == "libsqlite3.so.0: sqlite3_step"
    assert sqlite.native.locks[1].kind.type_name == "pthread_mutex"
    assert sqlite.native.locks[3].label == "library.so"
    labels = [frame.label for frame in sqlite.native_stack(1)]
    assert labels == ["libsqlite3.so.0: sqlite3_step", "_sqlite3.so: ~PyInit__sqlite3"]
    assert sqlite.native_stack(2)[0].label == "program+0x40"
    assert sqlite.native_stack(9) == ()


def test_waits_are_summed_by_lock_the_longest_first(sqlite: Trace) -> None:
    rows = native_locks(sqlite)

    assert [row.identity.native_library for row in rows] == [
        "the interpreter",
        "libsqlite3",
        "library",
    ]
    mutex = rows[1]
    assert (mutex.waits, mutex.wait_s, mutex.longest_s) == (2, 0.005, 0.004)
    assert mutex.site is not None
    assert (mutex.site.function, mutex.site.line) == ("query", 7)
    assert [(p.site.function if p.site else None, p.seconds) for p in mutex.victims] == [
        ("query", 0.004),
        (None, 0.001),
    ]


def test_a_stack_has_native_frames_on_top_of_pythons(sqlite: Trace) -> None:
    [victim, _] = native_locks(sqlite)[1].victims

    assert [(frame.function, frame.line) for frame in victim.stack] == [
        ("sqlite3_step", 0),
        ("~PyInit__sqlite3", 0),
        ("query", 7),
    ]
    assert victim.stack[0].filename == "/lib/libsqlite3.so.0"


def test_waiting_for_others_is_told_apart(sqlite: Trace) -> None:
    assert [row.identity.is_contention for row in native_locks(sqlite)] == [True, True, False]


def test_what_is_recorded_by_itself_is_left_out() -> None:
    scene = NativeScene()
    thread = scene.thread("main")
    lock = scene.lock(NativeKind.SEMAPHORE, "PyThread_acquire_lock_timed", PYTHON)
    join = scene.builder.add_lock("threading.Thread")
    scene.builder.add_wait(join, thread, 10 * MS, 50 * MS, kind=int(WaitKind.COORDINATION))
    scene.wait(lock, thread, 11, 49)
    scene.wait(lock, thread, 60, 65)

    [row] = native_locks(scene.trace())

    assert row.wait_s == pytest.approx(0.005)


def test_a_wait_is_divided_over_those_who_let_go_meanwhile() -> None:
    scene = NativeScene()
    threads = [scene.thread(name) for name in "abc"]
    lock = scene.lock(NativeKind.MUTEX, "store", "/lib/libstore.so")
    sites = [scene.stack(name, 1) for name in ("put", "sweep", "get")]
    scene.wait(lock, threads[0], 0, 100, stack=sites[0], holder=threads[1])
    scene.release(lock, threads[1], 70, stack=sites[1])
    scene.release(lock, threads[2], 95, stack=sites[2])
    # Its own release, later, is no reason for its wait.
    scene.release(lock, threads[0], 100.01, stack=sites[0])

    [row] = native_locks(scene.trace())

    held = {party.site.function: party.seconds for party in row.holders if party.site}
    assert held == {"sweep": pytest.approx(0.070), "get": pytest.approx(0.025)}
    assert row.blamed_s == pytest.approx(0.095)
    assert row.users == {*threads}


def test_a_holder_that_is_only_named_has_its_usual_place() -> None:
    scene = NativeScene()
    waiter, holder = scene.thread("a"), scene.thread("b")
    lock = scene.lock(NativeKind.MUTEX, "store", "/lib/libstore.so")
    sweep = scene.stack("sweep", 1)
    scene.release(lock, holder, 5, stack=sweep)
    scene.wait(lock, waiter, 10, 20, holder=holder)
    trace = scene.trace()
    is_release = trace.native_waits["flags"] != 0

    sums = blamed_releases(trace.native_waits[~is_release], trace.native_waits[is_release])

    assert sums == {(sweep, 0, holder): 10 * MS}


def test_nobody_is_blamed_for_a_wait_without_a_holder() -> None:
    scene = NativeScene()
    lock = scene.lock(NativeKind.MUTEX, "store", "/lib/libstore.so")
    scene.wait(lock, scene.thread("a"), 10, 20)

    [row] = native_locks(scene.trace())

    assert (row.blamed_s, row.holders) == (0.0, ())


def test_short_waits_belong_to_the_threads_next_one_with_a_stack() -> None:
    scene = NativeScene()
    one, other = scene.thread("a"), scene.thread("b")
    lock = scene.lock(NativeKind.SEMAPHORE, "_PySemaphore_Wait", PYTHON)
    append = scene.stack("collect", 31)
    caller = scene.native_stack(("_PySemaphore_Wait", PYTHON))
    deep = scene.native_stack(
        *((name, PYTHON) for name in ("_PySemaphore_Wait", "_PyCriticalSection_BeginSlow")),
        ("list_append", PYTHON),
    )
    for thread in (one, other):
        scene.wait(lock, thread, thread, thread + 0.1, stack=append, native_stack=caller)
        scene.wait(lock, thread, 10 + thread, 11 + thread, stack=append, native_stack=deep)

    [row] = native_locks(scene.trace())

    assert row.identity.text == "the list's own lock"
    assert row.site is not None
    assert (row.waits, row.site.line) == (4, 31)
    # Who waits for an object's own lock is who has it at other times.
    assert [p.site for p in row.holders] == [p.site for p in row.victims]


@pytest.mark.parametrize(
    ("kind", "functions", "text", "is_contention"),
    [
        (4, ["_PySemaphore_Wait", "_PyMutex_LockTimed"], "a lock inside the interpreter", True),
        (4, ["_PySemaphore_Wait", "_PyCriticalSection2_BeginSlow"], "an object's own lock", True),
        (4, ["x", "_PyCriticalSection_BeginSlow", "PyDict_SetItem"], "the dict's own lock", True),
        (4, ["_PySemaphore_Wait", "_PyMutex_LockTimed", "_PyMem_FreeDelayed"], "the alloc", True),
        (4, ["_PySemaphore_Wait", "_PyMutex_LockTimed", "_Py_qsbr_poll"], "the lock of mem", True),
        (4, ["_PyMutex_LockTimed", "PyThreadState_New"], "the list of threads", True),
        (4, ["PyThread_acquire_lock_timed", "PyThreadState_Next"], "the list of threads", True),
        (4, ["PyThread_acquire_lock", "Py_AddPendingCall"], "the queue of calls for", True),
        (4, ["PyThread_acquire_lock", "_PyUnicode_FromId"], "the lock of interned", True),
        (4, ["PyThread_acquire_lock", "_PyImport_AcquireLock"], "the import lock", True),
        (4, ["_PyMutex_LockTimed", "_PyXIData_Lookup"], "the registry of what", True),
        (4, ["_PyMutex_LockTimed", "_PyOnceFlag_CallOnceSlow"], "something that the first", True),
        (9, ["_PyMutex_LockTimed", "_PyCriticalSection_Begin", "list_append"], "the list", True),
        (8, ["PyThread_join_thread"], "a thread that is joined", False),
        (4, ["_PySemaphore_Wait", "PyEvent_WaitTimed"], "an event inside", False),
        (4, ["PyThread_acquire_lock_timed"], "a lock or event that the recording did not", False),
        (4, ["PyThread_acquire_lock_timed", "_enter_buffered_busy"], "the file object's", True),
        (4, ["_PySemaphore_Wait", "_PyThreadState_Suspend"], "a pause in which all", False),
        (4, ["_PySemaphore_Wait", "_PyParkingLot_Park", "tstate_wait_attach"], "a pause", False),
        (4, ["_PyParkingLot_Park", "stop_the_world"], "a pause in which all", False),
        (4, ["_PyParkingLot_Park", "_PyRWMutex_RLock"], "a readers-writer lock inside", True),
        (9, ["_PySeqLock_LockWrite", "update_cache_gil_disabled"], "the lock of classes", True),
        (4, ["_PyParkingLot_Park", "_PyRecursiveMutex_Lock"], "a lock inside the interp", True),
        (4, ["_PyMutex_LockTimed", "mi_segment_reclaim"], "the allocator's lock", True),
        (4, ["_PyParkingLot_Park", "_PyMutex_LockTimed", "PyImport_X"], "a lock inside", True),
        (3, ["_PyMutex_LockTimed"], "a lock inside the interpreter", False),
    ],
)
def test_the_interpreters_locks_have_names_in_words(
    kind: int, functions: list[str], text: str, is_contention: bool
) -> None:
    lock = NativeLock(1, NativeKind(kind), 0, functions[0], PYTHON)

    identity = native_identity(lock, [NativeFrame(name, PYTHON, 0, False) for name in functions])

    assert identity.text.startswith(text)
    assert identity.is_contention == is_contention


def test_a_compressors_lock_belongs_to_its_module() -> None:
    lock = NativeLock(1, NativeKind.SEMAPHORE, 0, "PyThread_acquire_lock_timed", PYTHON)
    wait = NativeFrame("PyThread_acquire_lock_timed", PYTHON, 0, False)

    texts = {
        file: native_identity(lock, [wait, NativeFrame("x", file, 0, True)]).text
        for file in ("/l/_bz2.cpython-311-x86_64-linux-gnu.so", "/l/_queue.so")
    }

    assert [*texts.values()] == [
        "a lock inside _bz2",
        "a lock or event that the recording did not replace",
    ]


def test_a_name_that_is_only_the_nearest_tells_nothing() -> None:
    lock = NativeLock(1, NativeKind.SEMAPHORE, 0, "_PySemaphore_Wait", PYTHON)
    frames = [NativeFrame("_PyCriticalSection_BeginSlow", PYTHON, 0, True)]

    assert not native_identity(lock, frames).is_contention


@pytest.mark.parametrize(
    ("functions", "is_contention"),
    [
        (["std::sys::sync::mutex::futex::Mutex::lock_contended", "store"], True),
        (["parking_lot::raw_mutex::RawMutex::lock_slow"], True),
        (["std::sys::sync::condvar::futex::Condvar::wait_optional_timeout"], False),
        (["std::thread::park", "crossbeam::channel::recv"], False),
        (["gomp_team_barrier_wait_end"], False),
        (["do_wait"], False),
    ],
)
def test_a_wait_in_the_kernel_is_for_a_lock_if_a_function_says_so(
    functions: list[str], is_contention: bool
) -> None:
    lock = NativeLock(1, NativeKind.FUTEX, 0, functions[0], "/lib/engine.so")
    frames = [NativeFrame(name, "/lib/engine.so", 0, False) for name in functions]

    assert native_identity(lock, frames).is_contention == is_contention


def test_the_allocators_lock_is_called_that() -> None:
    lock = NativeLock(1, NativeKind.MUTEX, 0, "malloc", "/lib/x86_64-linux-gnu/libc.so.6")

    assert native_identity(lock, []).text == "a lock of the C library's malloc"


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("/usr/lib/libsqlite3.so.0.8.6", "libsqlite3"),
        ("/x/numpy.libs/libscipy_openblas64_-32a4b2a6.so", "libscipy_openblas64"),
        ("/x/engine.cpython-311-x86_64-linux-gnu.so", "engine"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "the C library"),
        ("/usr/bin/python3.12", "the interpreter"),
        (PYTHON, "the interpreter"),
        ("", "the interpreter"),
    ],
)
def test_libraries_have_the_names_that_people_use(image: str, name: str) -> None:
    assert library_name(image) == name


@pytest.mark.parametrize(
    ("kind", "payload", "count"),
    [
        (ChunkKind.NATIVE_LOCKS, named(1, 1, 0, "a", "b")[:-1], 1),
        (ChunkKind.NATIVE_FRAMES, named(1, 1, 0, "a", "b"), 2),
        (ChunkKind.NATIVE_STACKS, b"\x01\0\0\0\xff\xff\xff\x7f", 1),
        (ChunkKind.NATIVE_LOCKS, named(0, 9, 0, "a", "b"), 1),
        (ChunkKind.NATIVE_FRAMES, named(1, 0, 0, "a", "b") * 2, 2),
        (ChunkKind.NATIVE_STACKS, stacks([1], [2])[:12] * 2, 2),
    ],
)
def test_damage_is_told_and_left_out(kind: ChunkKind, payload: bytes, count: int) -> None:
    trace = trace_of(TraceBuilder(), (kind, payload, count))

    assert trace.problems
    assert not native_locks(trace)
