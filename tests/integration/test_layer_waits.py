"""Waiting for others, without the time it took to get the GIL afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from layer_programs import needs_layer, run_recorded

from contention_lab.capture.metadata import gil_enabled
from contention_lab.trace import WaitKind

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

pytestmark = [needs_layer, pytest.mark.skipif(not gil_enabled(), reason="there is no GIL")]

PROGRAM = """
import queue, sys, threading, time

done, items = threading.Event(), queue.Queue()

def compute():
    while not done.is_set():
        sum(range(1000))

def consume():
    for _ in range(20):
        items.get()

computing = [threading.Thread(target=compute) for _ in range(int(sys.argv[1]))]
consumer = threading.Thread(target=consume, name="consumer")
for thread in (*computing, consumer):
    thread.start()
for _ in range(20):
    time.sleep(0.005)
    items.put(None)
consumer.join()
done.set()
"""


def gil_wait_ns(trace: Trace, thread: int, wait: np.void) -> int:
    """Return how long a thread waited for the GIL during a wait, by the records of the GIL."""
    asked = trace.gil_waits[trace.gil_waits["thread"] == thread]
    during = (asked["end_ns"] > wait["start_ns"]) & (asked["start_ns"] < wait["end_ns"])
    return int((asked["end_ns"] - asked["start_ns"])[during].sum())


@pytest.mark.parametrize("computing", [0, 3])
def test_getting_the_gil_back_is_no_waiting_for_an_item(tmp_path: Path, computing: int) -> None:
    done = run_recorded(tmp_path, PROGRAM, str(computing))
    assert done.status == 0, done.err

    trace = done.trace
    (consumer,) = (one.id for one in trace.threads.values() if one.name == "consumer")
    waits = trace.waits[
        (trace.waits["thread"] == consumer) & (trace.waits["kind"] == WaitKind.COORDINATION)
    ]
    length = waits["end_ns"] - waits["start_ns"]
    gil, switch_ns = waits["gil_ns"], 5_000_000
    assert len(waits) >= 1
    assert np.array_equal(length, gil + waits["park_ns"])
    assert gil.tolist() == [gil_wait_ns(trace, consumer, wait) for wait in waits]
    if computing:  # unless it is free by chance, it is asked for, and given up after an interval
        assert np.median(gil[gil > 0]) > 0.5 * switch_ns
        assert gil.sum() > 2 * switch_ns
    else:
        assert np.median(gil) < 0.1 * switch_ns
