"""What the recorder writes about real locks in real threads, read back through the public face.

Only of locks of our own: what `record` puts in the place of Python's is left out here.
"""

from __future__ import annotations

import ctypes
import gc
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import contention_lab as cl
from contention_lab.capture import patches, session
from contention_lab.locks import KINDS, Mutex, SpinLock
from contention_lab.native import _core
from contention_lab.trace.schema import HoldFlag, Level, Outcome, WaitFlag

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contention_lab.trace import Trace

LEVELS = ["counters", "profile", "trace"]
SPINNERS = (cl.SpinLock, cl.TicketLock, cl.McsLock)


@pytest.fixture(autouse=True)
def only_our_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "install", lambda undo: None)
    monkeypatch.setattr(session, "exchange_existing", lambda everything: ([], []))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.clt"


def counter(trace: Trace, field: str, name: str) -> int:
    lock = next(lock.id for lock in trace.locks.values() if lock.name == name)
    return int(trace.counters[field][trace.counters["lock"] == lock].sum())


def hold_while(lock: Any, blocked: Callable[[], Any]) -> None:
    """Hold the lock in one thread until another, running `blocked`, has waited for it a while."""
    held, release = threading.Event(), threading.Event()

    def culprit() -> None:
        with lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=culprit, name="culprit")
    holder.start()
    held.wait()
    waiter = threading.Thread(target=blocked, name="victim")
    waiter.start()
    time.sleep(0.05)
    release.set()
    waiter.join()
    holder.join()


@pytest.mark.parametrize("kind", KINDS.values())
def test_a_wait_names_victim_culprit_and_their_places(kind: Any, path: Path) -> None:
    lock = kind("shared")

    def victim() -> None:
        with lock:
            pass

    with cl.record(path):
        hold_while(lock, victim)
    trace = cl.load(path)
    assert trace.complete
    assert not trace.problems
    (wait,) = trace.waits
    names = {thread.id: thread.name for thread in trace.threads.values()}
    assert names[int(wait["thread"])] == "victim"
    assert names[int(wait["holder"])] == "culprit"
    assert trace.stack(int(wait["stack"]))[0].function.endswith("victim")
    assert trace.frames[int(wait["holder_site"])].function.endswith("culprit")
    assert wait["outcome"] == Outcome.ACQUIRED
    length = int(wait["end_ns"] - wait["start_ns"])
    assert length >= 40_000_000
    parts = int(wait["spin_ns"]) + int(wait["park_ns"]) + int(wait["gil_ns"])
    assert 0.9 * length <= parts <= length
    main_part = "spin_ns" if kind in SPINNERS else "park_ns"
    assert int(wait[main_part]) >= 0.9 * length - int(wait["gil_ns"])
    if kind in SPINNERS:
        assert wait["spins"] > 1000
        assert 0 < int(wait["spin_cpu_ns"]) <= 1.05 * int(wait["spin_ns"])
    if sys.version_info < (3, 13) or sys._is_gil_enabled():  # what the culprit was executing
        doing = [frame.function for frame in trace.stack(int(wait["holder_stack"]))]
        assert doing[:2] == ["Condition.wait", "Event.wait"]
        assert doing[2].endswith("culprit")
    (hold,) = trace.holds
    assert names[int(hold["thread"])] == "culprit"
    assert int(hold["start_ns"]) < int(wait["start_ns"])
    assert int(hold["end_ns"]) <= int(wait["end_ns"])
    assert trace.stack(int(hold["stack"]))[0].function.endswith("culprit")
    assert trace.frames[int(hold["site"])].function.endswith("culprit")
    assert hold["waiters"] == 1
    (made,) = trace.locks.values()
    assert made.type.partition(".")[0] == kind.__name__
    assert made.site is not None
    assert made.site.function == "test_a_wait_names_victim_culprit_and_their_places"


def test_a_timed_out_wait_is_recorded_with_its_holder(path: Path) -> None:
    lock = Mutex("late")
    with cl.record(path):
        hold_while(lock, lambda: lock.acquire(timeout=0.02))
    trace = cl.load(path)
    (wait,) = trace.waits
    assert wait["outcome"] == Outcome.TIMED_OUT
    assert wait["flags"] & WaitFlag.TIMEOUT_GIVEN
    assert int(wait["end_ns"] - wait["start_ns"]) >= 20_000_000
    assert trace.threads[int(wait["holder"])].name == "culprit"
    assert counter(trace, "timed_out", "late") == 1
    assert counter(trace, "acquires", "late") == 1
    assert len(trace.holds) == 1  # it blocked somebody, even though he gave up


def test_failed_tries_are_all_counted_and_detailed_now_and_then(path: Path) -> None:
    lock = Mutex("polled")

    def poll() -> None:
        for _ in range(5000):
            lock.acquire(blocking=False)

    with cl.record(path):
        hold_while(lock, poll)
    trace = cl.load(path)
    assert counter(trace, "failed_tries", "polled") == 5000
    tries = trace.waits[trace.waits["outcome"] == Outcome.FAILED_TRY]
    assert 1 <= len(tries) < 200
    assert trace.threads[int(tries[0]["holder"])].name == "culprit"
    assert counter(trace, "contended", "polled") == 0


def test_one_try_at_a_lock_that_the_thread_has_itself_is_no_wait(path: Path) -> None:
    own, other = Mutex("own"), Mutex("other")
    with cl.record(path):
        with own:
            assert not own.acquire(blocking=False)
        with other:
            pass
    trace = cl.load(path)
    assert counter(trace, "failed_tries", "own") == 1
    assert counter(trace, "wait_ns", "own") == 0
    assert trace.waits["end_ns"].tolist() == trace.waits["start_ns"].tolist()


def test_asking_whether_another_thread_holds_a_lock_is_a_try_that_fails(path: Path) -> None:
    lock, free = Mutex("watched"), Mutex("free")

    def ask() -> None:
        for _ in range(40):
            assert lock.locked()
        with free:
            assert free.locked()  # its own: no try
        assert not free.locked()

    with cl.record(path):
        hold_while(lock, ask)
        assert not lock.locked()
    trace = cl.load(path)
    assert counter(trace, "failed_tries", "watched") == 40
    assert counter(trace, "failed_tries", "free") == 0
    tries = trace.waits[trace.waits["outcome"] == Outcome.FAILED_TRY]
    assert trace.threads[int(tries[0]["holder"])].name == "culprit"


def test_a_release_by_another_thread_is_a_hand_off(path: Path) -> None:
    lock = Mutex("passed on")
    with cl.record(path, level="trace"):
        lock.acquire()
        other = threading.Thread(target=lock.release, name="releaser")
        other.start()
        other.join()
    trace = cl.load(path)
    (hold,) = trace.holds
    assert hold["flags"] & HoldFlag.HANDED_OFF
    assert trace.threads[int(hold["thread"])].is_main
    assert trace.threads[int(hold["release_thread"])].name == "releaser"


@pytest.mark.parametrize("level", LEVELS)
def test_counts_are_exact_at_every_level(level: str, path: Path) -> None:
    locks = [Mutex("a"), SpinLock("b")]

    def work() -> None:
        for _ in range(2000):
            for lock in locks:
                with lock:
                    pass

    with cl.record(path, level=level):
        workers = [threading.Thread(target=work) for _ in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    trace = cl.load(path)
    assert trace.level == Level[level.upper()]
    assert counter(trace, "acquires", "a") == counter(trace, "acquires", "b") == 12_000
    contended = int(trace.counters["contended"].sum())
    waits = trace.waits[trace.waits["outcome"] == Outcome.ACQUIRED]
    if level == "counters":
        assert len(trace.waits) == len(trace.holds) == 0
    else:
        assert len(waits) == contended
        length = (waits["end_ns"] - waits["start_ns"]).astype(np.int64)
        assert int(length.sum()) == int(trace.counters["wait_ns"].sum())
        assert int(trace.counters["hold_histogram"].sum()) == 24_000
    if level == "trace":
        assert len(trace.holds) + int(trace.status["dropped_holds"]) == 24_000


def test_full_rings_drop_records_and_say_so_but_counters_stay_exact(path: Path) -> None:
    lock = Mutex("busy")
    with cl.record(path, level="trace", ring_bytes=4096) as session:
        for _ in range(100_000):
            with lock:
                pass
    trace = cl.load(path)
    assert session.summary is not None
    assert session.summary.dropped_holds > 0
    assert int(trace.status["dropped_holds"]) == session.summary.dropped_holds
    assert len(trace.holds) + session.summary.dropped_holds == 100_000
    assert counter(trace, "acquires", "busy") == 100_000
    assert int(trace.counters["hold_histogram"].sum()) == 100_000


def test_holds_of_one_lock_never_overlap(path: Path) -> None:
    lock = Mutex("one at a time")

    def work() -> None:
        for index in range(3000):
            with lock:
                if index % 100 == 0:
                    time.sleep(0)

    with cl.record(path, level="trace"):
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    holds = np.sort(cl.load(path).holds, order="start_ns")
    assert len(holds) == 12_000
    assert (holds["end_ns"][:-1] <= holds["start_ns"][1:]).all()
    assert (holds["start_ns"] <= holds["end_ns"]).all()


def test_a_wait_still_going_on_at_the_end_is_recorded_as_open(path: Path) -> None:
    lock = Mutex("stuck")
    lock.acquire()
    waiter = threading.Thread(target=lock.acquire, name="forgotten")
    with cl.record(path):
        waiter.start()
        time.sleep(0.05)
    lock.release()
    waiter.join()
    (wait,) = cl.load(path).waits
    assert wait["outcome"] == Outcome.OPEN
    assert int(wait["end_ns"] - wait["start_ns"]) >= 30_000_000


def test_thousands_of_short_lived_threads_lose_nothing(path: Path) -> None:
    lock = Mutex("popular")

    def work() -> None:
        for _ in range(5):
            with lock:
                pass

    with cl.record(path):
        for _ in range(30):
            workers = [threading.Thread(target=work) for _ in range(50)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    trace = cl.load(path)
    assert counter(trace, "acquires", "popular") == 1500 * 5
    assert len(trace.threads) == 1500
    # join() returns a moment before the thread is gone, so the last ones may count as running
    assert sum(thread.end_ns > 0 for thread in trace.threads.values()) >= 1450


def test_more_than_a_thousand_threads_at_once(path: Path) -> None:
    lock = Mutex("crowded")
    gate = threading.Event()

    def work() -> None:
        gate.wait()
        with lock:
            pass

    with cl.record(path):
        workers = [threading.Thread(target=work) for _ in range(1100)]
        for worker in workers:
            worker.start()
        gate.set()
        for worker in workers:
            worker.join()
    trace = cl.load(path)
    assert counter(trace, "acquires", "crowded") == 1100
    assert len(trace.threads) == 1100


def resident_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_dropped_locks_take_bounded_memory(path: Path) -> None:
    def make_and_drop(count: int) -> None:
        for _ in range(count):
            with Mutex("brief"):
                pass

    with cl.record(path):
        make_and_drop(20_000)
        gc.collect()
        before = resident_kib()
        for _ in range(28):
            make_and_drop(10_000)
            time.sleep(0.05)  # the writer takes the dead ones in
        grown = resident_kib() - before
    trace = cl.load(path)
    assert len(trace.locks) == 300_000
    assert int(trace.counters["acquires"].sum()) == 300_000
    # 280,000 blocks of 350 bytes would be 98 MB; how many the writer lags behind differs.
    assert grown < 50_000


def test_threads_not_made_by_python_are_recorded(path: Path) -> None:
    pthread = ctypes.CDLL(None)
    lock = Mutex("foreign")
    start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    @start
    def work(_: Any) -> None:
        for _ in range(10):
            with lock:
                pass

    handle = ctypes.c_ulong()
    with cl.record(path):
        assert pthread.pthread_create(ctypes.byref(handle), None, work, None) == 0
        assert pthread.pthread_join(handle, None) == 0
    trace = cl.load(path)
    assert counter(trace, "acquires", "foreign") == 10
    (thread,) = trace.threads.values()
    assert not thread.from_python


def test_recordings_follow_each_other_and_do_not_mix(tmp_path: Path) -> None:
    lock = Mutex("again")
    for turn in range(1, 6):
        path = tmp_path / f"{turn}.clt"
        with cl.record(path, level=LEVELS[turn % 3]):
            for _ in range(turn):
                with lock:
                    pass
        with lock:
            pass  # between two recordings: nobody's
        assert counter(cl.load(path), "acquires", "again") == turn


def test_a_second_recording_is_refused_and_told_who_has_the_first(path: Path) -> None:
    with cl.record(path):
        second = cl.record(path.with_name("other.clt"))
        with pytest.raises(RuntimeError, match=r"already recording to .*run\.clt .*test_recorder"):
            second.start()
    assert not _core.active()
    with pytest.raises(RuntimeError, match="not recording"):
        second.stop()


@pytest.mark.parametrize(
    "arguments", [{"level": "all"}, {"stack_depth": 0}, {"stack_depth": 999}, {"ring_bytes": 5000}]
)
def test_bad_parameters_are_told_at_once(arguments: dict[str, Any], path: Path) -> None:
    with pytest.raises(ValueError, match="must be"):
        cl.record(path, **arguments)
    assert not path.exists()


def test_a_folder_that_is_not_there_is_an_os_error_and_nothing_is_recording(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), cl.record(tmp_path / "no" / "run.clt"):
        pass
    assert not _core.active()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_full_disk_is_told_in_one_line_and_the_program_goes_on() -> None:
    code = """
        import contention_lab as cl
        lock = cl.Mutex("m")
        try:
            with cl.record("/dev/full"):
                print("in")
        except OSError as error:
            print("refused:", error.strerror)
        with lock:
            print("goes on")
    """
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "refused: No space left on device\ngoes on\n"


def test_deep_stacks_are_cut_and_marked(path: Path) -> None:
    lock = Mutex("deep")

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            lock.acquire()
            lock.release()

    with cl.record(path, stack_depth=10):
        hold_while(lock, lambda: deep(50))
    (wait,) = cl.load(path).waits
    assert wait["flags"] & WaitFlag.STACK_TRUNCATED
    assert len(cl.load(path).stack(int(wait["stack"]))) == 10


def test_the_recorded_stack_is_the_one_python_reports() -> None:
    def frames() -> list[tuple[str, int]]:
        frame = sys._getframe()
        expected = []
        at = frame
        while at is not None:
            expected.append((at.f_code.co_qualname, at.f_lineno))
            at = at.f_back  # type: ignore[assignment]
        ours = [(code.co_qualname, line) for code, line in _core.stack()]
        assert ours[1:] == expected[1:]
        return ours

    def through_generators() -> list[tuple[str, int]]:
        return next(frames() for _ in [0])

    ours = [*map(lambda _: through_generators(), [0])][0]  # noqa: C417, RUF015
    assert "<genexpr>" in ours[1][0]
    assert "<lambda>" in ours[3][0]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_program_that_ends_while_recording_leaves_a_complete_trace(path: Path) -> None:
    done = run(
        f"""
        import contention_lab as cl, threading, time
        lock = cl.Mutex("m")
        def forever():
            while True:
                with lock:
                    time.sleep(0.001)
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        session = cl.record({str(path)!r})
        session.start()
        time.sleep(0.2)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    trace = cl.load(path)
    assert trace.complete
    assert counter(trace, "acquires", "m") > 10


def killed(path: Path) -> tuple[int, Trace]:
    """Kill a recording program; return how much it did after the last recorded hold, in ns."""
    code = f"""
        import contention_lab as cl, time
        lock = cl.Mutex("m")
        with cl.record({str(path)!r}, level="trace"):
            while True:
                with lock:
                    print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
                time.sleep(0.001)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(5):
        process.stdout.readline()
    time.sleep(0.4)
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=20)
    trace = cl.load(path)
    with open(path, "rb") as file:  # noqa: PTH123
        zero = int.from_bytes(file.read(64)[24:32], "little")
    return int(out.split()[-1]) - zero - int(trace.holds["end_ns"].max()), trace


def test_a_killed_program_leaves_all_but_its_last_tenth_of_a_second(path: Path) -> None:
    # The writer needs a core for a moment: on a crowded machine the best of some tries counts.
    for _ in range(5):
        lost_ns, trace = killed(path)
        assert not trace.complete
        # counters lag by no more either: a hold takes about a millisecond
        assert counter(trace, "acquires", "m") >= len(trace.holds) - 100
        if lost_ns <= 100_000_000:
            return
    raise AssertionError(f"{lost_ns / 1e6:.0f} ms lost")


def test_sub_interpreters_are_refused_in_one_line() -> None:
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    guarded = "try:\n import contention_lab.native._core\nexcept ImportError as e:\n print(e)"
    code = f"""
        import importlib
        api = importlib.import_module({module!r})
        interpreter = api.create()
        try:
            api.run_string(interpreter, {guarded!r})
        finally:
            api.destroy(interpreter)
    """
    done = run(code)
    assert re.search(
        "does not support loading in subinterpreters|main interpreter only", done.stdout
    )
    assert done.stdout.count("\n") == 1


def test_importing_the_package_and_its_locks_needs_no_numpy() -> None:
    done = run(
        """
        import sys
        import contention_lab as cl
        with cl.Mutex("m"), cl.SpinLock():
            pass
        heavy = {"numpy", "scipy", "matplotlib", "jinja2", "rich", "click"} & set(sys.modules)
        print(sorted(heavy))
        """
    )
    assert done.stdout == "[]\n", done.stderr
