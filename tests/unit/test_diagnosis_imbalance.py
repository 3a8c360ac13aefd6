"""Load imbalance at meetings, in pools and among joined threads; and work that is even."""

from __future__ import annotations

import pytest
from coordination_scene import MS, Call, Scene, State

from contention_lab.trace import HoldFlag, Outcome, WaitKind


def meeting(*, rotating: bool = False, late_ms: float = 30.0, kind: str = "Barrier") -> Scene:
    """Four threads that meet every 40 ms; one comes `late_ms` after the others."""
    scene = Scene()
    barrier = scene.lock(f"threading.Lock in {kind}", 10)
    threads = [scene.thread(f"rank {i}", end_ms=1000.0) for i in range(4)]
    arriving = scene.stack("threading.py:Barrier.wait", ("work", 21))
    releasing = scene.stack("threading.py:Barrier._release", ("work", 21))
    computing = scene.stack(("work", 20))
    for step in range(24):
        last = threads[step % 4 if rotating else 0]
        end = (step + 1) * 40.0
        for thread in threads:
            if thread != last:
                scene.wait(
                    barrier,
                    thread,
                    end - late_ms,
                    end,
                    arriving,
                    by=last,
                    waking=releasing,
                    wake=step + 1,
                )
    scene.seen(threads[0], computing, 0.0, 960.0)
    return scene


def test_the_thread_that_always_comes_last_is_the_straggler() -> None:
    scene = meeting()
    found = scene.finding("load-imbalance")
    assert found is not None
    assert scene.diagnosis().verdict == "load-imbalance"
    assert "rank 0" in found.summary
    assert found.culprits[0].site is not None
    assert (found.culprits[0].site.function, found.culprits[0].site.line) == ("work", 20)
    # Of 40 ms each thread but one waits 30: even shares would need 17.5 ms.
    assert found.severity == pytest.approx(22.5 / 40.0, abs=0.03)


def test_equal_shares_save_nothing_where_threads_take_turns_at_the_gil() -> None:
    def of(held: float) -> float | None:
        scene = meeting()
        for at in range(1000):
            scene.builder.add_gil_sample(at * MS, held=at % 100 < held * 100)
        found = scene.finding("load-imbalance")
        return None if found is None else found.severity

    assert of(0.95) is None
    assert of(0.2) == pytest.approx(22.5 / 40.0, abs=0.03)
    assert of(0.7) == pytest.approx(0.3, abs=0.03)


def test_a_meeting_made_of_events_is_one_too() -> None:
    assert meeting(kind="Event").diagnosis().verdict == "load-imbalance"


def test_threads_that_take_turns_at_coming_last_are_even() -> None:
    assert meeting(rotating=True).finding("load-imbalance") is None


def test_a_little_lateness_is_no_imbalance() -> None:
    assert meeting(late_ms=4.0).finding("load-imbalance") is None


def single_flight(*, own_work_ms: float) -> Scene:
    """One thread fetches for all, 40 ms each time; the others wait in the code that it sets in."""
    scene = Scene()
    result = scene.lock("threading.RLock in Condition", 10)
    threads = [scene.thread(f"asker {i}", end_ms=1000.0) for i in range(4)]
    waiting = scene.stack("concurrent/futures/_base.py:Future.result", ("get", 21), ("ask", 30))
    setting = scene.stack("concurrent/futures/_base.py:Future.set_result", ("get", 20), ("ask", 30))
    for step in range(24):
        for thread in threads[1:]:
            start = step * 40.0 + own_work_ms
            scene.wait(
                result,
                thread,
                start,
                (step + 1) * 40.0,
                waiting,
                by=threads[0],
                waking=setting,
                wake=step + 1,
            )
    scene.seen(threads[0], scene.stack(("get", 19), ("ask", 30)), 0.0, 960.0)
    return scene


def test_who_fetches_a_result_for_all_has_no_larger_share_of_their_work() -> None:
    assert single_flight(own_work_ms=0.5).finding("load-imbalance") is None
    assert single_flight(own_work_ms=10.0).finding("load-imbalance") is not None


def test_two_that_take_turns_are_no_meeting_however_long_one_takes() -> None:
    scene = Scene()
    to_do = [scene.lock("threading.Lock in Event", 10 + i) for i in range(2)]
    sides = [scene.thread(f"side {i}", end_ms=1000.0) for i in range(2)]
    waiting = scene.stack("threading.py:Event.wait", ("play", 20))
    setting = scene.stack("threading.py:Event.set", ("play", 22))
    for step in range(24):
        at = step * 40.0
        for i, (start, end) in enumerate(((at, at + 10.0), (at + 10.0, at + 40.0))):
            scene.wait(to_do[i], sides[i], start, end, waiting, by=sides[1 - i], waking=setting)
    scene.seen(sides[1], scene.stack(("play", 21)), 0.0, 960.0)
    assert scene.finding("load-imbalance") is None


def pool(lengths_ms: list[list[float]], *, batches: int = 4, gap_ms: float = 40.0) -> Scene:
    """Workers of a pool, each with its tasks one after the other, in batches."""
    scene = Scene()
    results = scene.lock("concurrent.futures.Future", 10, "pool")
    entry = scene.lock("concurrent.futures.ThreadPoolExecutor", 10, "pool")
    waiting = scene.stack("concurrent/futures/_base.py:Future.result", ("batch", 30))
    running = scene.stack(("mail", 20), "concurrent/futures/thread.py:_WorkItem.run")
    workers = [scene.thread(f"worker {i}", end_ms=1000.0) for i in range(len(lengths_ms))]
    flags = int(HoldFlag.UNCONTENDED) | int(HoldFlag.WATCHED)
    begin = 0.0
    for _ in range(batches):
        longest = 0.0
        for worker, lengths in zip(workers, lengths_ms, strict=True):
            at = begin
            for length in lengths:
                scene.hold(entry, worker, at, at + length, flags=flags)
                scene.seen(worker, running, at + 1.0, at + length, State.BLOCKED, Call.SLEEP)
                at += length
            longest = max(longest, at - begin)
        scene.wait(results, scene.main, begin, begin + longest, waiting, by=workers[0])
        begin += longest + gap_ms
    return scene


def test_a_batch_waits_for_its_one_long_task() -> None:
    scene = pool([[180.0], [30.0, 30.0], [30.0, 30.0], [30.0]])
    found = scene.finding("load-imbalance")
    assert found is not None
    assert scene.diagnosis().verdict == "load-imbalance"
    assert found.victims[0].site is not None
    assert found.victims[0].site.function == "batch"
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "mail"


def test_equal_tasks_are_even_though_one_is_left_over() -> None:
    assert pool([[60.0, 60.0], [60.0], [60.0], [60.0]]).finding("load-imbalance") is None


def test_a_pool_that_is_given_one_task_at_a_time_is_not_uneven() -> None:
    scene = Scene()
    results = scene.lock("concurrent.futures.Future", 10, "pool")
    entry = scene.lock("concurrent.futures.ThreadPoolExecutor", 10, "pool")
    waiting = scene.stack("concurrent/futures/_base.py:Future.result", ("main", 30))
    workers = [scene.thread(f"worker {i}") for i in range(3)]
    for step in range(90):
        at = step * 10.0
        worker = workers[step % 3]
        scene.hold(entry, worker, at, at + 9.5, flags=int(HoldFlag.UNCONTENDED))
        scene.wait(results, scene.main, at, at + 9.8, waiting, by=worker)
    assert scene.finding("load-imbalance") is None


def joined(
    busy_ms: list[float],
    *,
    waited_ms: float = 0.0,
    waiters: int = 1,
    rounds: int = 1,
    functions: str = "w",
    noticed_ms: float = 0.0,
) -> Scene:
    """Threads made at one place that work for some time; the first wait for a lock at first.

    They are called after their `functions`, one letter each, and their ends are noticed late.
    """
    scene = Scene()
    joining = scene.stack("threading.py:Thread.join", ("main", 60))
    lock = scene.lock("threading.Lock", 12)
    acquiring = scene.stack(("work", 19))
    at = 10.0
    for step in range(rounds):
        begin = at
        for i, busy in enumerate(busy_ms):
            name = f"Thread-{1 + i + step * len(busy_ms)} ({functions[i % len(functions)]})"
            started = scene.lock("threading.Lock in Thread", 50)
            wait = waited_ms if i < waiters else 0.0
            end = begin + wait + busy
            thread = scene.thread(name, start_ms=begin, end_ms=end + noticed_ms)
            scene.builder.add_counter(started, scene.main, acquires=1)
            scene.builder.add_counter(started, thread, acquires=1)
            if wait:
                scene.wait(lock, thread, begin, begin + wait, acquiring, kind=WaitKind.CONTENTION)
            scene.seen(thread, scene.stack(("work", 20)), begin + wait, end)
            handle = scene.lock("threading.Thread", 60, name)
            if end > at:
                scene.wait(handle, scene.main, at, end, joining)
                at = end
    return scene


def test_a_thread_with_most_of_the_work_is_joined_last() -> None:
    scene = joined([900.0, 200.0, 220.0, 180.0])
    found = scene.finding("load-imbalance")
    assert found is not None
    assert "Thread-1 (w)" in found.summary
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "work"


def test_a_thread_that_ends_late_since_it_waited_had_no_more_work() -> None:
    assert joined([200.0, 200.0, 220.0, 180.0], waited_ms=700.0).finding("load-imbalance") is None


def test_rounds_of_threads_are_summed() -> None:
    found = joined([150.0, 20.0, 30.0, 20.0], rounds=6).finding("load-imbalance")
    assert found is not None
    assert found.evidence["rounds"] == 6
    # Of 150 ms a round, equal shares would need 55.
    assert found.severity == pytest.approx(6 * 95.0 / 1000.0, abs=0.02)


def test_threads_of_even_rounds_are_even_though_their_ends_are_noticed_late() -> None:
    scene = joined([5.0, 5.0, 5.2, 4.8], rounds=60, noticed_ms=20.0)
    assert scene.finding("load-imbalance") is None


def test_threads_that_run_different_functions_have_no_shares_of_one_work() -> None:
    assert joined([900.0, 200.0, 220.0], functions="abb").finding("load-imbalance") is None
    assert joined([900.0, 200.0, 220.0], functions="bbb").finding("load-imbalance") is not None


def test_threads_that_wait_for_one_another_for_longer_than_one_is_late_are_not_uneven() -> None:
    busy = [380.0, 150.0, 150.0, 150.0]
    assert joined(busy).finding("load-imbalance") is not None
    assert joined(busy, waited_ms=300.0, waiters=4).finding("load-imbalance") is None


def test_rounds_of_a_pool_are_batches_however_soon_the_next_one_begins() -> None:
    found = pool([[90.0], [20.0], [20.0], [20.0]], batches=10, gap_ms=0.5)
    assert found.finding("load-imbalance") is not None
    assert found.finding("load-imbalance").evidence["batches"] == 10  # type: ignore[union-attr]


def test_a_wait_that_nobody_ended_accuses_nobody() -> None:
    scene = Scene()
    barrier = scene.lock("threading.Lock in Barrier", 10)
    arriving = scene.stack("threading.py:Barrier.wait", ("work", 21))
    for i in range(3):
        thread = scene.thread(f"rank {i}")
        scene.wait(barrier, thread, 10.0, 1000.0, arriving, outcome=Outcome.OPEN)
    assert scene.finding("load-imbalance") is None
