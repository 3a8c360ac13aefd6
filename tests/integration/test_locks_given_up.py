"""Waits that end by their timeout while the lock is released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from layer_programs import run_recorded

from contention_lab.diagnosis import diagnose
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys, threading

locks = [getattr(threading, sys.argv[1])() for _ in range(3)]
gate = threading.Barrier(3)

def ask(at):
    for _ in range(4):
        with locks[at]:
            gate.wait()
            if locks[(at + 1) % 3].acquire(timeout=0.25):
                locks[(at + 1) % 3].release()

threads = [threading.Thread(target=ask, args=(at,)) for at in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_who_held_a_lock_is_known_where_a_wait_gives_up_at_its_release(
    tmp_path: Path, kind: str
) -> None:
    done = run_recorded(tmp_path, PROGRAM, kind)
    assert done.status == 0, done.err

    trace = done.trace
    given_up = trace.waits[trace.waits["outcome"] == Outcome.TIMED_OUT]
    assert len(given_up) >= 4
    for wait in given_up:
        of_lock = trace.holds[trace.holds["lock"] == wait["lock"]]
        around = (of_lock["start_ns"] < wait["start_ns"]) & (wait["start_ns"] < of_lock["end_ns"])
        assert around.any()
    (finding,) = (one for one in diagnose(trace).findings if one.kind == "lock-order-deadlock")
    assert finding.evidence["deadlocks"] == 4
