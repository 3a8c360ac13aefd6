"""CPython's `test.lock_tests` applied to our own locks and to what recording puts in place.

Run by `cpython.py` like CPython's own modules. Not recorded, the second half tests Python's types.
"""

from __future__ import annotations

import _thread
import sys
import threading
from pathlib import Path

from test import lock_tests

sys.path.append(str(Path(__file__).resolve().parents[2]))

from contention_lab.locks import Mutex, SpinLock


class MutexTests(lock_tests.LockTests):
    locktype = staticmethod(Mutex)


class SpinLockTests(lock_tests.LockTests):
    locktype = staticmethod(lambda: SpinLock(yield_after=50))


class ConditionOnMutexTests(lock_tests.ConditionTests):
    @staticmethod
    def condtype(lock: object = None) -> threading.Condition:
        return threading.Condition(Mutex() if lock is None else lock)  # type: ignore[arg-type]

    test_acquire = None  # acquires a condition's default lock twice


class LockTests(lock_tests.LockTests):
    locktype = staticmethod(threading.Lock)


class AllocatedLockTests(lock_tests.LockTests):
    locktype = staticmethod(_thread.allocate_lock)


class RLockTests(lock_tests.RLockTests):
    locktype = staticmethod(threading.RLock)


class BuiltinRLockTests(lock_tests.RLockTests):
    locktype = staticmethod(_thread.RLock)


class EventTests(lock_tests.EventTests):
    eventtype = staticmethod(threading.Event)


class ConditionTests(lock_tests.ConditionTests):
    condtype = staticmethod(threading.Condition)


class ConditionAsRLockTests(lock_tests.RLockTests):
    locktype = staticmethod(threading.Condition)
    test_recursion_count = None  # a condition has none


class SemaphoreTests(lock_tests.SemaphoreTests):
    semtype = staticmethod(threading.Semaphore)


class BoundedSemaphoreTests(lock_tests.BoundedSemaphoreTests):
    semtype = staticmethod(threading.BoundedSemaphore)


class BarrierTests(lock_tests.BarrierTests):
    barriertype = staticmethod(threading.Barrier)
