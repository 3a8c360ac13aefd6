"""Pools of `multiprocessing` and other threads of libraries: they are no part of the program."""

from __future__ import annotations

import pytest
from coordination_scene import Call, Scene, State

POOL = "multiprocessing/pool.py:"
BOOTSTRAP = ("threading.py:Thread.run", "threading.py:Thread._bootstrap")
ACCUSATIONS = ("backpressure", "starved-by-producer", "load-imbalance", "capacity-limit")


def kinds(scene: Scene) -> set[str]:
    """Return the kinds of all findings."""
    return {finding.kind for finding in scene.diagnosis().findings}


def map_of_a_pool(*waiter: str) -> Scene:
    """The main thread waits for results, which a handler thread of the library takes in."""
    scene = Scene()
    made = scene.lock("threading.Lock in Pool", 10)
    handler = scene.thread("Thread-3 (_handle_results)", end_ms=1000.0)
    setting = scene.stack("threading.py:Event.set", POOL + "Pool._handle_results", *BOOTSTRAP)
    waiting = scene.stack(*waiter, ("main", 20))
    for step in range(9):
        at = step * 100.0
        scene.wait(made, scene.main, at, at + 99.0, waiting, by=handler, waking=setting)
    return scene


@pytest.mark.parametrize(
    "waiter",
    [
        ("threading.py:Event.wait", POOL + "ApplyResult.wait", POOL + "Pool.map"),
        (POOL + "IMapIterator.next",),
        ("threading.py:Condition.wait", "somewhere.py:Answer.get"),
    ],
)
def test_waiting_for_what_a_library_fetches_accuses_nobody(waiter: tuple[str, ...]) -> None:
    assert not kinds(map_of_a_pool(*waiter)) & {*ACCUSATIONS}


def test_a_result_of_a_pool_is_not_said_to_be_nothing_to_do() -> None:
    waiter = ("threading.py:Event.wait", POOL + "ApplyResult.wait", POOL + "Pool.map")
    assert map_of_a_pool(*waiter).diagnosis().verdict == "healthy"


def workers_of_a_queue(*, of_library: bool) -> Scene:
    """Workers that get items from a thread that computes them, one each 30 ms."""
    scene = Scene()
    queue = scene.lock("queue.SimpleQueue in ThreadPool", 10)
    getting = scene.stack(POOL + "worker" if of_library else ("consumer", 20), *BOOTSTRAP)
    putting = scene.stack(("produce", 30))
    making = scene.stack(("parse", 40), ("produce", 31))
    producer = scene.thread("producer", end_ms=905.0)
    workers = [scene.thread(f"Thread-{i} (worker)", end_ms=910.0) for i in range(3)]
    for step in range(29):
        for worker in workers:
            start, end = step * 30.0 + 4.0 * (step > 0), (step + 1) * 30.0
            scene.wait(queue, worker, start, end, getting, by=producer, waking=putting)
    scene.seen(producer, making, 0.0, 900.0, State.BLOCKED, Call.SLEEP)
    return scene


def test_idle_workers_of_a_library_are_no_consumers() -> None:
    scene = workers_of_a_queue(of_library=True)
    assert not kinds(scene) & {*ACCUSATIONS}
    assert scene.diagnosis().verdict == "idle-wait"


def test_workers_of_the_program_are() -> None:
    assert workers_of_a_queue(of_library=False).diagnosis().verdict == "starved-by-producer"


def test_a_librarys_own_condition_has_no_victims() -> None:
    scene = Scene()
    made = scene.lock("threading.Lock in Condition", 10)
    feeder = scene.thread("QueueFeederThread", end_ms=990.0)
    feeding = scene.stack("multiprocessing/queues.py:Queue._feed", *BOOTSTRAP)
    giving, working = scene.stack(("offer", 30)), scene.stack(("work", 40), ("offer", 31))
    giver = scene.thread("giver", end_ms=1000.0)
    for step in range(40):
        at = step * 24.0
        scene.wait(made, feeder, at, at + 23.0, feeding, by=giver, waking=giving)
    scene.seen(giver, working, 0.0, 990.0)
    assert not kinds(scene) & {*ACCUSATIONS}
