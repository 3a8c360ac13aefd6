"""What native functions are for, by their names: locks, the GIL, waiting for others, input.

The names are those of CPython, the GNU C library, the Linux kernel, and the locks that C++ and Rust
programs use; as profilers print them, with or without arguments and a hash. A table for
`classes.py`; it decides nothing.
"""

from __future__ import annotations

import re
from typing import Final

INTERPRETER: Final = re.compile(r"^_?Py(Eval|_Eval|Run|Main|Vectorcall)|^_PyEval_EvalFrameDefault")
"""The interpreter's loop: frames further out are those of the Python code it runs."""

GIL: Final = re.compile(r"^(take_gil|drop_gil|PyEval_AcquireThread|_PyThreadState_Attach)\b")
"""Taking the GIL, or waiting for another thread to take it."""

PYTHON_LOCK: Final = re.compile(
    r"^(_?lock_PyThread_acquire_lock|acquire_timed|PyThread_acquire_lock\w*|rlock_acquire"
    r"|_?PyRecursiveMutex_Lock\w*|lock_acquire\w*|semlock_acquire|_multiprocessing_SemLock_acquire"
    r"\w*)\b"
)
"""A lock that Python code asked for; what for, only the Python frames say."""

SPIN_LOCK: Final = re.compile(
    r"(^|::|_)(pthread_spin_lock|native_queued_spin_lock_slowpath|queued_spin_lock_slowpath"
    r"|_raw_spin_lock\w*|spin_loop\w*|spin_lock\w*|spinlock\w*|spin_wait|SpinLock\w*|SpinMutex"
    r"|sched_yield|cpu_relax|_Py_yield)\b|\bspin::|\bSpinLock|\bspinning\b",
)
"""Loops that wait on a core."""

MUTEX: Final = re.compile(
    r"^(_PyMutex_LockTimed|_?PyMutex_Lock\w*|PyMutex_Lock|_PyRWMutex_\w*Lock|_PyCriticalSection\w*"
    r"|_{0,3}pthread_(mutex|rwlock)_(timed|clock)?(rd|wr)?lock\w*|_{0,3}lll_(mutex_)?lock_wait\w*"
    r"|mtx_lock|__?gthread_mutex_lock|futex_mutex_lock\w*|rwsem_down_\w+_slowpath"
    r"|mutex_lock\w*|__mutex_lock\w*)\b"
    r"|std::(recursive_|shared_|timed_)?mutex::lock|absl::\w*::?Mutex::(Lock|\w*Slow\w*)"
    r"|parking_lot\w*::.*::(lock\w*|park)\b|sync::mutex::\w+::Mutex::lock\w*"
    r"|Mutex(<.*>)?::lock\b|RwLock(<.*>)?::(read|write)\b|::lock_(slow|contended)\b"
    r"|::RawRwLock::\w+"
)
"""Locks of native code, on their slow path or not."""

SLOW_PATH: Final = re.compile(
    r"^(_PyMutex_LockTimed|_{0,3}lll_(mutex_)?lock_wait\w*|__mutex_lock\w*_slowpath"
    r"|rwsem_down_\w+|mutex_spin_on_owner|osq_lock)\b|lock_(slow|contended)\b"
    r"|parking_lot_core|mutex::\w+::Mutex::spin"
)
"""Of these: what only runs while somebody else holds the lock."""

PARKED: Final = re.compile(
    r"^(_PyParkingLot_Park|_PySemaphore_(Wait|PlatformWait)|__?(new_)?sem_(timed|clock)?wait\w*"
    r"|__?futex_abstimed_wait\w*|futex_wait\w*|do_futex|__x64_sys_futex|syscall_futex)\b"
    r"|parking_lot_core::park"
)
"""Asleep until woken; a lock only if a lock's function stands further out."""

COORDINATION: Final = re.compile(
    r"^(_{0,3}pthread_cond_(timed|clock)?wait\w*|_{0,3}pthread_join\w*|_{0,3}pthread_timedjoin\w*"
    r"|_{0,3}pthread_barrier_wait\w*|PyEvent_Wait\w*|PyThread_join_thread|ThreadHandle_join"
    r"|_?simplequeue_get\w*|_queue_SimpleQueue_get\w*|simplequeue_get_impl|gomp_\w*barrier\w*"
    r"|__kmp\w*barrier\w*|blas_thread_server)\b"
    r"|[Cc]ondition_?[Vv]ariable(_any)?::wait|Condvar::wait|::recv(_timeout)?\b"
    r"|std::thread::join|JoinHandle|Barrier::wait"
)
"""Waiting for another thread to do something."""

IO: Final = re.compile(
    r"^(_{0,2}(GI_)?_{0,2}(libc_)?(p?readv?(64)?|p?writev?(64)?|recv(from|msg|mmsg)?|send(to|msg|mmsg)?"
    r"|sendfile(64)?|accept4?|connect|p?poll|p?select|epoll_p?wait|fsync|fdatasync|open(at)?(64)?"
    r"|wait4|waitpid|waitid|flock|fcntl(64)?|getaddrinfo)|__x64_sys_(read|write|recv\w*|send\w*"
    r"|epoll_\w*|p?poll|p?select\d*))$"
)
"""System calls for input and output, and for the end of another process."""

SLEEP: Final = re.compile(r"^(__?(GI_)?(clock_)?nanosleep\w*|usleep|sleep|pysleep|time_sleep)$")
"""Asleep for a time."""

NEUTRAL: Final = re.compile(
    r"^(0x[0-9a-f]+|\[?unknown\]?|\[.*\]|syscall\w*|do_syscall_64|entry_SYSCALL\w*|x64_sys_call"
    r"|__x64_sys_\w+|__arm64_sys_\w+|el0t?_\w+|invoke_syscall\w*|ret_from_\w+|_*schedule\w*"
    r"|finish_task_switch\w*|hrtimer_\w+|do_nanosleep|pthread_\w*testcancel|_*clock_gettime\w*"
    r"|_*vdso_\w+|_PyTime_\w+|PyEval_(Save|Restore)Thread|_Py_atomic_\w+|mi_\w+)$"
    r"|atomic|compare_exchange|core::hint|std::__atomic"
)
"""Found within all of these, so that one has to look further out."""

_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_LAST_ARGUMENTS: Final = re.compile(r"\((?!anonymous namespace)[^()]*\)( const)?$")


def plain(symbol: str) -> str:
    """Return a symbol without arguments, version, offset and hash."""
    name = symbol.partition("@@")[0].partition("@plt")[0]
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = _HASH.sub("", _LAST_ARGUMENTS.sub("", name))
    return name.removesuffix(".cold").partition(".isra.")[0].partition(".constprop.")[0]
