"""Pools that programs have made themselves, and threads that only look like one."""

from __future__ import annotations

import pytest
from coordination_scene import Scene

from contention_lab.trace import Outcome


def crew(
    *, working: int = 0, fulfil: bool = True, one_inbox: bool = False, from_outside: bool = False
) -> Scene:
    """Three threads that took tasks from a queue, and wait for an event of their own each time."""
    scene = Scene()
    tasks = scene.lock("threading.Lock in Queue", 10)
    taking = scene.stack("queue.py:Queue.get", ("serve", 20))
    collecting, fulfilling = scene.stack(("collect", 30)), scene.stack(("serve", 22))
    workers = [scene.thread(f"worker {i}") for i in range(3)]
    for i, worker in enumerate(workers):
        scene.wait(tasks, worker, 5.0, 10.0, taking, by=scene.main, wake=i + 1)
        inbox = scene.lock("threading.Lock in Event", 12)
        for step in range(4):
            start = 20.0 + 240.0 * step
            event = inbox if one_inbox else scene.lock("threading.Lock in Event", 12)
            if i >= working:
                scene.wait(event, worker, start, start + 200, collecting, outcome=Outcome.TIMED_OUT)
            if fulfil:
                by = scene.main if from_outside else workers[(i + 1) % 3]
                end = start + 230.0
                scene.wait(event, worker, start + 210, end, collecting, by=by, waking=fulfilling)
    return scene


@pytest.mark.parametrize("fulfil", [True, False])
def test_all_threads_that_fulfil_results_waiting_for_one_starve_each_other(fulfil: bool) -> None:
    scene = crew(fulfil=fulfil)
    found = scene.finding("pool-self-starvation")
    assert found is not None
    assert scene.diagnosis().verdict == "pool-self-starvation"
    assert found.summary.startswith("The 3 workers of a pool wait in `collect`")
    assert found.severity == pytest.approx(0.84, abs=0.05)


@pytest.mark.parametrize(
    "changes",
    [
        {"working": 1},  # one of them goes on
        {"one_inbox": True},  # each waits for the same thing again and again: nothing to do
        {"from_outside": True},  # somebody else fulfils the results
    ],
)
def test_threads_that_others_keep_going_do_not_starve(changes: dict[str, bool]) -> None:
    assert crew(**changes).finding("pool-self-starvation") is None
