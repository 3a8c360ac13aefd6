"""What a sampled thread was doing, from stacks as profilers print them."""

from __future__ import annotations

import pytest

from contention_lab.sampling.classes import Activity, ThreadState, classify
from contention_lab.sampling.frame import SampledFrame

LIB = "/usr/lib/python3.11"
LIBC, LIBPYTHON = "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libpython3.11.so.1.0"
RUNS, ASLEEP = ThreadState(on_cpu=True), ThreadState(on_cpu=False)
FUTEX = ThreadState(on_cpu=False, call="futex")


def python(function: str, file: str = "app.py", text: str = "") -> SampledFrame:
    return SampledFrame(function, file, 7, text=text)


def native(*symbols: str, image: str = LIBPYTHON) -> tuple[SampledFrame, ...]:
    return tuple(SampledFrame(symbol, image=image) for symbol in symbols)


WAIT = python("Condition.wait", f"{LIB}/threading.py", "waiter.acquire()")
WORK = python("Pool.work", text="total += 1")
TAKES = python("Pool.work", text="with self._lock:")
ACQUIRES = native("0x7f772a04ef16", "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock")


@pytest.mark.parametrize(
    ("frames", "state", "activity"),
    [
        # Python frames and the state of the thread
        ((TAKES,), FUTEX, Activity.AWAITS_LOCK),
        ((python("f", text="if lock.acquire(timeout=1):"),), FUTEX, Activity.AWAITS_LOCK),
        ((TAKES,), ThreadState(on_cpu=False, waits_for_gil=True), Activity.AWAITS_GIL),
        ((TAKES,), RUNS, Activity.RUNNING),
        ((WORK,), ThreadState(on_cpu=True, has_gil=True), Activity.HOLDS_GIL),
        ((WORK,), FUTEX, Activity.UNKNOWN),
        ((python("f", text="item = jobs.get()"),), FUTEX, Activity.COORDINATES),
        ((WAIT, python("Queue.get", f"{LIB}/queue.py")), FUTEX, Activity.COORDINATES),
        ((WAIT, python("Event.wait", f"{LIB}/threading.py")), FUTEX, Activity.COORDINATES),
        ((python("Thread.join", f"{LIB}/threading.py"),), FUTEX, Activity.COORDINATES),
        ((python("_worker", f"{LIB}/concurrent/futures/thread.py"),), FUTEX, Activity.COORDINATES),
        ((WAIT, python("Semaphore.acquire", f"{LIB}/threading.py")), FUTEX, Activity.AWAITS_LOCK),
        (
            (python("Condition.__enter__", f"{LIB}/threading.py"), WORK),
            FUTEX,
            Activity.AWAITS_LOCK,
        ),
        (
            (python("Condition.wait", f"{LIB}/threading.py", "self._acquire_restore(saved)"),),
            FUTEX,
            Activity.AWAITS_LOCK,
        ),
        (
            (python("Handler.acquire", f"{LIB}/logging/__init__.py", "self.lock.acquire()"),),
            FUTEX,
            Activity.AWAITS_LOCK,
        ),
        ((WORK,), ThreadState(on_cpu=False, call="clock_nanosleep"), Activity.SLEEPS),
        ((WORK,), ThreadState(on_cpu=False, call="recvfrom"), Activity.IO),
        ((TAKES,), ThreadState(on_cpu=False, call="read"), Activity.IO),
        # busy inside acquire
        (
            (python("train", text="while not lock.acquire(blocking=False):"),),
            RUNS,
            Activity.SPINS,
        ),
        ((python("train", text="while not lock.acquire(False): pass"),), RUNS, Activity.SPINS),
        ((python("SpinLock.acquire", text="pass"),), RUNS, Activity.SPINS),
        ((python("lock_spin", text="spins += 1"),), RUNS, Activity.SPINS),
        ((python("acquire_connection", text="parse(x)"),), RUNS, Activity.RUNNING),
        # native frames on top of Python's
        ((*ACQUIRES, WORK), ASLEEP, Activity.AWAITS_LOCK),
        ((*ACQUIRES, WAIT, WORK), ASLEEP, Activity.COORDINATES),
        ((*native("0x7f", "take_gil", "PyEval_RestoreThread"), WORK), ASLEEP, Activity.AWAITS_GIL),
        ((*native("take_gil"), *ACQUIRES[1:], TAKES), ASLEEP, Activity.AWAITS_GIL),
        (
            (
                *native("_PySemaphore_Wait", "_PyParkingLot_Park", "_PyMutex_LockTimed"),
                *native("PyCriticalSection_Begin", "list_append"),
                WORK,
            ),
            ASLEEP,
            Activity.AWAITS_LOCK,
        ),
        ((*native("_PyMutex_LockTimed", "list_append"), WORK), RUNS, Activity.SPINS),
        ((*native("pthread_cond_wait@@GLIBC_2.3.2", image=LIBC), WORK), ASLEEP, "coordinates"),
        ((*native("__GI___libc_read", image=LIBC), TAKES), ASLEEP, Activity.IO),
        ((*native("dgemm_kernel"), *native("pthread_mutex_lock"), WORK), RUNS, Activity.RUNNING),
        # programs that are not Python's, as perf prints them: on a CPU, every one
        (native("native_queued_spin_lock_slowpath", "_raw_spin_lock"), RUNS, Activity.SPINS),
        (
            native(
                "core::sync::atomic::AtomicBool::compare_exchange_weak",
                "spin::mutex::spin::SpinMutex<T,R>::lock::h0123456789abcdef",
                "burn_autodiff::register",
            ),
            RUNS,
            Activity.SPINS,
        ),
        (native("pthread_spin_lock", "register_node"), RUNS, Activity.SPINS),
        (native("backward", "with_spin_lock", "main"), RUNS, Activity.RUNNING),
        (native("pthread_mutex_lock", "put"), RUNS, Activity.RUNNING),
        (native("futex_wait", "do_futex", "__lll_lock_wait", "put"), RUNS, Activity.SPINS),
        (native("__lll_lock_wait", "pthread_mutex_lock", "put"), ASLEEP, Activity.AWAITS_LOCK),
        (
            native("futex_wait", "parking_lot::raw_mutex::RawMutex::lock_slow", "put"),
            ASLEEP,
            Activity.AWAITS_LOCK,
        ),
        (native("memcpy", "put"), RUNS, Activity.RUNNING),
        # nothing is known of the state: only what the frames prove
        ((TAKES,), ThreadState(), Activity.RUNNING),
        ((WAIT, python("Queue.get", "queue.py")), ThreadState(), Activity.COORDINATES),
        (native("take_gil", "eval_frame_handle_pending"), ThreadState(), Activity.AWAITS_GIL),
        ((), ASLEEP, Activity.UNKNOWN),
    ],
)
def test_a_thread_is_classed_by_its_frames_and_its_state(
    frames: tuple[SampledFrame, ...], state: ThreadState, activity: str
) -> None:
    assert classify(frames, state) == activity


def test_a_module_of_the_user_that_is_called_like_a_library_s_is_not_taken_for_it() -> None:
    mine = python("Queue.get", "/home/me/app/queue.py", "return self.rows[0]")

    assert classify((mine,), FUTEX) is Activity.UNKNOWN
