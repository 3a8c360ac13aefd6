"""OpenBLAS under `record`: threads that want its one pool wait for the pool's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from layer_programs import functions, needs_layer, run_recorded

from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_layer

PROGRAM = """
import sys, threading
import numpy
from threadpoolctl import threadpool_info, threadpool_limits

pools = [pool for pool in threadpool_info() if pool["internal_api"] == "openblas"]
if not any(pool.get("threading_layer") == "pthreads" for pool in pools):
    sys.exit("no OpenBLAS with a pool of its own")

def multiply():
    one = numpy.ones((300, 300))
    for _ in range(8):
        one @ one

with threadpool_limits(limits=4):
    threads = [threading.Thread(target=multiply, name=f"multiply {i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_multiply_wait_for_the_lock_of_the_pool(tmp_path: Path) -> None:
    done = run_recorded(tmp_path, PROGRAM, environment={"OPENBLAS_NUM_THREADS": "4"})
    if done.status == 1 and "no OpenBLAS" in done.err:
        pytest.skip("NumPy has no OpenBLAS with a pool of its own here")
    assert done.status == 0, done.err
    trace = done.trace

    mutexes = {
        lock.id: lock
        for lock in trace.native.locks.values()
        if lock.kind is NativeKind.MUTEX and "openblas" in lock.image
    }
    waits = [
        event
        for event in trace.native_waits
        if int(event["lock"]) in mutexes and not event["flags"] & int(NativeWaitFlag.RELEASE)
    ]
    symbols = {
        frame.symbol
        for wait in waits
        for frame in trace.native_stack(int(wait["native_stack"]))
        if not frame.is_nearest
    }

    assert waits
    assert any("multiply" in functions(trace, wait["stack"]) for wait in waits)
    assert any("blas" in symbol for symbol in symbols)
    assert {trace.thread(int(wait["thread"])).name for wait in waits} <= {
        *(f"multiply {i}" for i in range(4)),
        "",
    }
