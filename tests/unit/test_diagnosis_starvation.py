"""Herds, pools that starve themselves, limits; and programs that only look like them."""

from __future__ import annotations

import pytest
from coordination_scene import Call, Scene, State

from contention_lab.trace import Outcome, WaitKind


def herd(*, useless: bool = True, one_by_one: bool = False, storm_ms: float = 4.0) -> Scene:
    """Ten threads woken every 20 ms by one notification; nine of them wait again at once."""
    scene = Scene()
    condition = scene.lock("threading.RLock in Condition", 10)
    waiting = scene.stack(("Office.next", 20), ("clerk", 30))
    waking = scene.stack("threading.py:Condition.notify_all", ("Office.submit", 40))
    threads = [scene.thread(f"clerk {i}") for i in range(10)]
    for i, thread in enumerate(threads):
        back = 0.0
        for step in range(48):
            at = (step + 1) * 20.0 + storm_ms * i / 10.0
            finds = step % 10 == i or not useless
            scene.wait(
                condition,
                thread,
                back,
                at,
                waiting,
                by=scene.main,
                waking=waking,
                wake=1 + (step * 10 + i if one_by_one else step),
                again=bool(step) and useless and (step - 1) % 10 != i,
            )
            back = at + (6.0 if finds else 0.05)
    return scene


def test_waking_many_for_one_item_is_a_herd() -> None:
    scene = herd()
    found = scene.finding("thundering-herd")
    assert found is not None
    assert scene.diagnosis().verdict == "thundering-herd"
    assert found.lock is not None
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "Office.submit"
    useless, woken = found.evidence["useless_wakeups"], found.evidence["wakeups"]
    assert useless is not None
    assert woken is not None
    assert useless > 0.85 * woken
    assert scene.finding("idle-wait") is None


def test_waking_many_who_all_find_work_is_no_herd() -> None:
    assert herd(useless=False).finding("thundering-herd") is None


def test_waking_one_at_a_time_is_no_herd() -> None:
    assert herd(one_by_one=True).finding("thundering-herd") is None


def test_a_herd_that_is_over_in_no_time_costs_nothing() -> None:
    assert herd(storm_ms=0.1).finding("thundering-herd") is None


def event_herd(
    *, works_ms: float = 0.01, late_ms: float = 4.0, answers: bool = False, meets: bool = False
) -> Scene:
    """Ten threads woken every 20 ms by an event, which run for `works_ms` and wait again."""
    scene = Scene(acquire_cost_ns=80.0)
    event = scene.lock("threading.Lock in Event", 10)
    barrier = scene.lock("threading.Lock in Barrier", 11)
    answer = scene.lock("queue.SimpleQueue", 12)
    waiting, waking = scene.stack(("Board.take", 20)), scene.stack(("Board.post", 40))
    for i in range(10):
        thread, back = scene.thread(f"worker {i}"), 0.0
        for step in range(48):
            at = (step + 1) * 20.0 + late_ms * i / 10.0
            scene.wait(
                event, thread, back, at, waiting, by=scene.main, waking=waking, wake=1 + step
            )
            back = at + works_ms
            if answers:  # whoever is woken by that runs a little after this one waits again
                scene.wait(
                    answer, scene.main, at - 1.0, back + 0.1, waking, by=thread, wake=1 + step
                )
            if meets:
                scene.builder.add_counter(barrier, thread, acquires=step)
    return scene


def test_an_event_that_wakes_many_who_do_nothing_is_a_herd_however_late_they_run() -> None:
    for late_ms in (4.0, 12.0):
        found = event_herd(late_ms=late_ms).finding("thundering-herd")
        assert found is not None
        useless, woken = found.evidence["useless_wakeups"], found.evidence["wakeups"]
        assert (useless, woken) == (470, 480)  # the last wake-up of each is followed by nothing


def test_an_event_after_which_each_works_is_no_herd() -> None:
    assert event_herd(works_ms=8.0).finding("thundering-herd") is None


def test_an_event_after_which_each_wakes_somebody_is_no_herd() -> None:
    assert event_herd(answers=True).finding("thundering-herd") is None


def test_an_event_after_which_each_arrives_at_a_meeting_is_no_herd() -> None:
    assert event_herd(meets=True).finding("thundering-herd") is None


def starving_pool(*, waiting: int = 4, by_workers: bool = True, hangs: bool = False) -> Scene:
    """Four workers of a pool, of which some wait for its results, and tasks that queue."""
    scene = Scene()
    results = scene.lock("concurrent.futures.Future", 10, "pool")
    entry = scene.lock("concurrent.futures.ThreadPoolExecutor", 10, "pool")
    blocking = scene.stack(
        "concurrent/futures/_base.py:Future.result",
        ("crawl", 21),
        "concurrent/futures/thread.py:_WorkItem.run",
    )
    inner = scene.stack(
        "concurrent/futures/thread.py:ThreadPoolExecutor.submit",
        ("crawl", 17),
        "concurrent/futures/thread.py:_WorkItem.run",
    )
    outer = scene.stack("concurrent/futures/thread.py:ThreadPoolExecutor.submit", ("main", 30))
    for i in range(4):
        worker = scene.thread(f"worker {i}")
        scene.builder.add_counter(entry, worker, acquires=3, hold_ns=900_000_000)
        if i < waiting:
            outcome = Outcome.OPEN if hangs else Outcome.TIMED_OUT
            scene.wait(results, worker, 20.0, 920.0, blocking, outcome=outcome)
    for _ in range(0 if hangs else 8):
        task = scene.thread("fetch", is_task=True)
        scene.wait(entry, task, 30.0, 930.0, inner if by_workers else outer)
    return scene


def test_workers_that_wait_for_tasks_of_their_own_pool_starve_it() -> None:
    scene = starving_pool()
    found = scene.finding("pool-self-starvation")
    assert found is not None
    assert scene.diagnosis().verdict == "pool-self-starvation"
    assert found.lock is None
    assert found.culprits[0].site is not None
    assert (found.culprits[0].site.function, found.culprits[0].site.line) == ("crawl", 21)


def test_a_pool_that_hangs_need_not_have_begun_its_tasks() -> None:
    assert starving_pool(hangs=True).diagnosis().verdict == "pool-self-starvation"


def test_a_pool_with_half_of_its_workers_left_does_not_starve() -> None:
    assert starving_pool(waiting=2).finding("pool-self-starvation") is None


def test_a_queue_that_others_have_filled_is_no_self_starvation() -> None:
    assert starving_pool(by_workers=False).finding("pool-self-starvation") is None


def imports(*, waited_ms: float) -> Scene:
    """Three threads that wait for a module a fourth one imports."""
    scene = Scene()
    lock = scene.builder.add_lock("import lock", name="slow_codec")
    importing = scene.stack(("handle", 20))
    loading = scene.stack(("<module>", 3))
    first = scene.thread("first")
    scene.hold(lock, first, 10.0, 10.0 + waited_ms, waiters=3)
    for i in range(3):
        thread = scene.thread(f"other {i}")
        scene.builder.add_wait(
            lock,
            thread,
            11_000_000,
            int((10.0 + waited_ms) * 1e6),
            stack=importing,
            holder=first,
            holder_stack=loading,
        )
    return scene


def test_threads_wait_for_a_slow_import() -> None:
    scene = imports(waited_ms=500.0)
    found = scene.finding("import-lock")
    assert found is not None
    assert scene.diagnosis().verdict == "import-lock"
    assert "slow_codec" in found.summary


def test_a_quick_import_is_not_worth_a_word() -> None:
    assert imports(waited_ms=40.0).finding("import-lock") is None


def semaphore(*, permits: int, one_holder: bool = False) -> Scene:
    """Eight threads that use a semaphore in turn, 10 ms each."""
    scene = Scene()
    lock = scene.lock("threading.BoundedSemaphore", 10)
    waiting = scene.stack("threading.py:Semaphore.acquire", ("Pool.checkout", 16), ("worker", 29))
    working = scene.stack(("worker", 31))
    threads = [scene.thread(f"worker {i}", end_ms=1000.0) for i in range(8)]
    site = scene.frame("Pool.checkout", 16)
    for slot in range(permits):
        for step in range(96):
            start = step * 10.0
            thread = threads[(step * permits + slot) % (7 if one_holder else 8) + one_holder]
            if one_holder and slot == 0:
                if step == 0:
                    scene.hold(lock, threads[0], 0.0, 960.0, site=site, waiters=5)
                continue
            scene.hold(lock, thread, start, start + 10.0, site=site, waiters=5)
            scene.builder.add_wait(
                lock,
                thread,
                int(max(0.0, start - 25.0) * 1e6),
                int(start * 1e6),
                stack=waiting,
                holder=threads[0],
                holder_stack=working,
                outcome=Outcome.ACQUIRED,
            )
    return scene


def test_a_semaphore_with_all_permits_out_and_no_slow_holder_is_a_limit() -> None:
    scene = semaphore(permits=3)
    found = scene.finding("capacity-limit")
    assert found is not None
    assert scene.diagnosis().verdict == "capacity-limit"
    assert found.evidence["permits"] == 3


def test_tasks_that_live_until_they_are_served_would_all_have_a_permit_at_a_time() -> None:
    scene = Scene()
    lock = scene.lock("asyncio.Semaphore", 10)
    waiting, working = scene.stack(("fetch", 16)), scene.stack(("fetch", 17))
    site = scene.frame("fetch", 16)
    for i in range(20):
        task = scene.thread(f"Task-{i}", is_task=True)
        start = i // 2 * 40.0
        scene.hold(lock, task, start, start + 40.0, site=site, waiters=5)
        scene.builder.add_counter(lock, task, acquires=1, wait_ns=int(start * 1e6))
        if start:
            scene.wait(lock, task, 0.0, start, waiting, waking=working, kind=WaitKind.CONTENTION)
    found = scene.finding("capacity-limit")
    assert found is not None
    assert found.evidence["needed_permits"] == pytest.approx(20.0)
    assert found.remedies[0].speedup_high > 5.0


def test_a_semaphore_with_one_permit_is_a_lock() -> None:
    assert semaphore(permits=1).finding("capacity-limit") is None


def test_a_permit_that_one_thread_keeps_is_not_the_limits_fault() -> None:
    assert semaphore(permits=2, one_holder=True).finding("capacity-limit") is None


def tasks_and_lock(*, kind: str = "asyncio.Lock", cpu_s: float = 0.05) -> Scene:
    """Tasks that queue for a lock whose holder awaits something, on a loop that has CPU time."""
    scene = Scene()
    loop = scene.thread("loop", native_id=77, cpu_ns=int(cpu_s * 1e9))
    lock = scene.lock(kind, 10)
    waiting = scene.stack(("Limiter.acquire", 25), ("caller", 34))
    awaiting = scene.stack("asyncio/tasks.py:sleep", ("Limiter.acquire", 28), ("caller", 34))
    tasks = [scene.thread(f"task {i}", is_task=True, native_id=77) for i in range(6)]
    for step in range(38):
        holder = tasks[step % 6]
        at = step * 25.0
        scene.hold(lock, holder, at, at + 25.0, site=scene.frame("Limiter.acquire", 25), waiters=5)
        scene.builder.add_wait(
            lock,
            tasks[(step + 1) % 6],
            int(max(0.0, at - 75.0) * 1e6),
            int((at + 25.0) * 1e6),
            stack=waiting,
            holder=holder,
            holder_stack=awaiting,
            kind=WaitKind.CONTENTION,
        )
    assert loop
    return scene


def test_a_lock_held_across_an_await_queues_tasks_on_an_idle_loop() -> None:
    scene = tasks_and_lock()
    found = scene.finding("async-lock-across-await")
    assert found is not None
    assert scene.diagnosis().verdict == "async-lock-across-await"
    assert found.culprits[0].site is not None
    assert (found.culprits[0].site.function, found.culprits[0].site.line) == ("Limiter.acquire", 28)


def test_a_semaphore_of_tasks_with_one_permit_is_such_a_lock() -> None:
    assert tasks_and_lock(kind="asyncio.Semaphore").finding("async-lock-across-await") is not None


def test_tasks_that_queue_on_a_busy_loop_wait_for_its_work() -> None:
    assert tasks_and_lock(cpu_s=0.9).finding("async-lock-across-await") is None


def loop(*, step_ms: float = 30.0, ready: int = 5, locked: bool = False) -> Scene:
    """An event loop with a long step every 50 ms."""
    scene = Scene()
    thread = scene.thread("loop", native_id=77)
    task = scene.thread("handler", is_task=True, native_id=77)
    victim = scene.thread("beat", is_task=True, native_id=77)
    lock = scene.lock("threading.Lock", 10)
    other = scene.thread("worker")
    blocking = scene.stack(("crunch", 20), ("handler", 24))
    standing = scene.stack(("handler", 25))
    waiting = scene.stack(("beat", 40))
    acquiring = scene.stack(("rate", 33))
    loading = scene.stack(("load", 18))
    for step in range(19):
        at = step * 50.0
        scene.builder.add_step(
            int(at * 1e6),
            int((at + step_ms) * 1e6),
            thread,
            task=task,
            stack=standing,
            ready=ready,
            victim=victim,
            victim_stack=waiting,
        )
        scene.seen(thread, blocking, at + 1.0, at + step_ms, State.BLOCKED, Call.SLEEP)
        if locked:
            scene.builder.add_wait(
                lock,
                thread,
                int((at + 0.1) * 1e6),
                int((at + step_ms - 0.1) * 1e6),
                stack=acquiring,
                holder=other,
                holder_stack=loading,
            )
    return scene


def busy_machine(*, own_share: float, cpu_ms: float) -> Scene:
    """A loop that computes 20 ms of each 100 ms on a machine of its own, and there has a share."""
    step_ms = cpu_ms / own_share
    scene = Scene(4000.0)
    thread = scene.thread("loop", native_id=77)
    task = scene.thread("handler", is_task=True, native_id=77)
    computing = scene.stack(("crunch", 20), ("handler", 24))
    period_ms = 100.0 - cpu_ms + step_ms
    cpu = delay = 1.0
    for step in range(int(4000.0 / period_ms)):
        at = step * period_ms
        scene.builder.add_step(int(at * 1e6), int((at + step_ms) * 1e6), thread, task=task, ready=3)
        scene.seen(thread, computing, at + 1.0, at + step_ms)
        cpu, delay = cpu + cpu_ms, delay + step_ms - cpu_ms
        scene.builder.add_state(
            int((at + step_ms) * 1e6),
            thread,
            State.RUNNABLE,
            cpu_ns=int(cpu * 1e6),
            delay_ns=int(delay * 1e6),
        )
    return scene


def test_a_loop_is_blocked_alike_on_a_machine_that_has_more_to_do() -> None:
    alone = busy_machine(own_share=1.0, cpu_ms=20.0).finding("event-loop-blocked")
    beside_others = busy_machine(own_share=0.1, cpu_ms=20.0).finding("event-loop-blocked")
    assert alone is not None
    assert beside_others is not None
    assert beside_others.severity == pytest.approx(alone.severity, abs=0.05)
    assert "20 ms at a time" in beside_others.summary
    assert "without waiting for a CPU" in beside_others.summary
    assert "without waiting for a CPU" not in alone.summary


def test_a_step_that_is_long_only_for_want_of_a_cpu_blocks_nothing() -> None:
    assert busy_machine(own_share=0.05, cpu_ms=3.0).finding("event-loop-blocked") is None


def test_a_callback_that_blocks_keeps_those_that_are_ready() -> None:
    scene = loop()
    found = scene.finding("event-loop-blocked")
    assert found is not None
    assert scene.diagnosis().verdict == "event-loop-blocked"
    assert found.victims[0].site is not None
    assert found.victims[0].site.function == "beat"
    assert found.culprits[0].site is not None
    assert (found.culprits[0].site.function, found.culprits[0].site.line) == ("crunch", 20)


def test_a_loop_that_waits_for_a_lock_is_kept_by_its_holder() -> None:
    found = loop(locked=True).finding("event-loop-blocked")
    assert found is not None
    assert found.victims[0].site is not None
    assert found.victims[0].site.function == "rate"
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "load"
    assert found.lock is not None
    assert found.lock.site is not None
    assert found.lock.site.line == 10
    assert [remedy.kind for remedy in found.remedies] == ["narrow", "to-thread"]
    assert "`rate`" in found.remedies[1].text
    assert "`load` by way" not in " ".join(remedy.text for remedy in found.remedies)
    assert "while 5 others are ready" in found.summary


def test_one_that_is_ready_is_one() -> None:
    found = loop(ready=1).finding("event-loop-blocked")
    assert found is not None
    assert "while 1 other is ready" in found.summary
    assert found.lock is None


def test_a_long_step_that_delays_nobody_blocks_nothing() -> None:
    assert loop(ready=0).finding("event-loop-blocked") is None


def test_steps_of_a_few_milliseconds_are_what_a_loop_is_for() -> None:
    assert loop(step_ms=4.0).finding("event-loop-blocked") is None
