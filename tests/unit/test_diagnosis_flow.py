"""Queues and buffers: back-pressure, starvation, idleness, stocks; and what is none of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coordination_scene import Call, Scene, State

from contention_lab.diagnosis import diagnose
from contention_lab.diagnosis.lock_case import Program
from contention_lab.trace import Outcome, WaitKind

QUEUE = "threading.Lock in Queue"


def producers_and_consumer(
    *,
    work_ms: float = 5.0,
    upstream_ms: float = 0.0,
    entering_ms: float = 0.0,
    waiting: float = 1.0,
) -> Scene:
    """Three producers that wait for room; a consumer makes some every `work_ms`.

    It waits elsewhere for `upstream_ms` of that, and for the queue's lock for `entering_ms`;
    producers wait for a share of the time.
    """
    scene = Scene()
    queue, other = scene.lock(QUEUE, 10), scene.lock("threading.Lock in Queue", 11)
    consumer = scene.thread("consumer", end_ms=1000.0)
    putting = scene.stack("queue.py:Queue.put", ("producer", 20))
    taking = scene.stack("queue.py:Queue.get", ("consumer", 30))
    storing = scene.stack(("store", 40), ("consumer", 31))
    producers = [scene.thread(f"producer {i}", end_ms=990.0) for i in range(3)]
    steps = int(980.0 / work_ms)
    for step in range(steps):
        at = step * work_ms
        for producer in producers:
            start = at + (1.0 - waiting) * work_ms
            scene.wait(
                queue, producer, start, at + work_ms, putting, by=consumer, waking=taking, wake=step
            )
        if upstream_ms:
            scene.wait(other, consumer, at, at + upstream_ms, taking, by=scene.main)
        if entering_ms:
            kind = WaitKind.CONTENTION
            scene.wait(queue, consumer, at + work_ms - entering_ms, at + work_ms, taking, kind=kind)
    scene.seen(consumer, storing, 0.0, 980.0, State.BLOCKED, Call.SLEEP)
    return scene


def test_producers_that_wait_for_a_busy_consumer_are_held_back_by_its_code() -> None:
    scene = producers_and_consumer()
    found = scene.finding("backpressure")
    assert found is not None
    assert scene.diagnosis().verdict == "backpressure"
    assert found.severity > 0.9
    assert found.lock is None
    assert found.victims[0].site is not None
    assert (found.victims[0].site.function, found.victims[0].site.line) == ("producer", 20)
    assert found.culprits[0].site is not None
    assert (found.culprits[0].site.function, found.culprits[0].site.line) == ("store", 40)
    assert "more room would only fill up later" in found.summary


def test_a_consumer_that_waits_for_somebody_further_on_is_not_the_bottleneck() -> None:
    assert producers_and_consumer(upstream_ms=3.0).finding("backpressure") is None


def test_a_consumer_that_has_to_wait_for_the_lock_of_the_queue_is_still_the_bottleneck() -> None:
    scene = producers_and_consumer(entering_ms=1.5)
    found = scene.finding("backpressure")
    assert found is not None
    assert found.severity == pytest.approx(0.69, abs=0.01)  # as long as its own code takes
    assert producers_and_consumer(entering_ms=1.5, upstream_ms=1.5).finding("backpressure") is None


def test_a_consumer_that_mostly_waits_for_the_lock_of_the_queue_is_not() -> None:
    assert producers_and_consumer(entering_ms=3.0).finding("backpressure") is None


def test_producers_that_hardly_wait_are_not_held_back() -> None:
    assert producers_and_consumer(waiting=0.05).finding("backpressure") is None


def producer_and_consumers(
    *,
    state: State = State.RUNNABLE,
    call: int = 0,
    elsewhere: bool = True,
    work_ms: float = 4.0,
    consumers: int = 3,
    steps: int = 29,
    period_ms: float = 30.0,
) -> Scene:
    """Consumers that get an item each 30 ms and work on it; what the producer does meanwhile."""
    scene = Scene()
    queue = scene.lock(QUEUE, 10)
    producer = scene.thread("producer", end_ms=905.0)
    getting = scene.stack("queue.py:Queue.get", ("consumer", 20))
    putting = scene.stack("queue.py:Queue.put", ("produce", 30))
    making = scene.stack(("parse", 40) if elsewhere else ("produce", 31), ("produce", 31))
    workers = [scene.thread(f"consumer {i}", end_ms=910.0) for i in range(consumers)]
    for step in range(steps):
        for i, worker in enumerate(workers):
            start = step * period_ms + (work_ms if step else 0.0)
            scene.wait(
                queue,
                worker,
                start,
                (step + 1) * period_ms + 0.01 * i,
                getting,
                by=producer,
                waking=putting,
                wake=1 + step * consumers + i,
            )
    scene.seen(producer, making, 0.0, 900.0, state, call)
    return scene


def test_consumers_starve_while_a_producer_computes() -> None:
    found = producer_and_consumers().finding("starved-by-producer")
    assert found is not None
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "parse"
    assert found.severity > 0.7


def test_consumers_that_wait_for_their_first_item_only_are_not_starved() -> None:
    once = producer_and_consumers(steps=1, period_ms=300.0, work_ms=60.0)
    thrice = producer_and_consumers(steps=3, period_ms=300.0, work_ms=60.0)
    assert once.finding("starved-by-producer") is None
    assert thrice.finding("starved-by-producer") is not None


def test_a_producer_that_sleeps_in_a_function_of_its_own_works_as_far_as_one_can_tell() -> None:
    scene = producer_and_consumers(state=State.BLOCKED, call=Call.SLEEP)
    assert scene.diagnosis().verdict == "starved-by-producer"


def test_a_producer_that_sleeps_where_it_puts_items_waits_for_them_to_arrive() -> None:
    scene = producer_and_consumers(state=State.BLOCKED, call=Call.SLEEP, elsewhere=False)
    assert scene.finding("starved-by-producer") is None
    assert scene.diagnosis().verdict == "idle-wait"
    assert scene.finding("idle-wait") is not None
    assert all(finding.severity == 0.0 for finding in scene.diagnosis().findings)


@pytest.mark.parametrize("delay", [0, 20])
def test_a_producer_that_sleeps_and_then_waits_for_a_core_does_not_work(delay: int) -> None:
    scene = producer_and_consumers(state=State.BLOCKED, call=Call.SLEEP, elsewhere=False)
    producer = next(
        one for one in scene.trace().threads if scene.trace().thread(one).name[0] == "p"
    )
    for at in range(900):  # on the books for a core for two thirds of the time
        time = at * 1_000_000 + 500_000
        cpu = {"cpu_ns": 1 + at * 1000, "delay_ns": 1 + at * 1000 * delay}
        scene.builder.add_state(time, producer, State.RUNNABLE, **cpu)
    starved = scene.finding("starved-by-producer") is not None
    assert starved == (delay == 0)


def test_a_cut_recording_acquits_only_as_far_as_it_goes() -> None:
    scene = producer_and_consumers(state=State.BLOCKED, call=Call.SLEEP, elsewhere=False)
    whole = scene.trace()
    cut = replace(whole, problems=("the recording has no end",))

    assert diagnose(whole).summary.startswith("No lock is at fault: ")
    assert diagnose(cut).summary.startswith("As far as the recording goes, no lock is at fault: ")


def test_a_consumer_with_next_to_nothing_to_do_is_idle_and_not_starved() -> None:
    scene = producer_and_consumers(work_ms=0.2, consumers=1)
    assert scene.finding("starved-by-producer") is None
    assert scene.diagnosis().verdict == "idle-wait"


def test_idle_workers_of_an_executor_are_not_starved() -> None:
    scene = Scene()
    tasks = scene.lock("queue.SimpleQueue in ThreadPoolExecutor", 10)
    idle = scene.stack("concurrent/futures/thread.py:_worker")
    computing = scene.stack(("main", 50))
    for i in range(4):
        worker = scene.thread(f"worker {i}")
        for step in range(9):
            at = step * 100.0
            scene.wait(tasks, worker, at + 15.0, at + 100.0, idle, by=scene.main, waking=computing)
    scene.seen(scene.main, computing, 0.0, 1000.0)
    assert scene.diagnosis().verdict == "idle-wait"


def lenders(*, give_back: bool, threads: int = 6) -> Scene:
    """Threads that wait for things in a queue; those who use them put them back, or others do."""
    scene = Scene()
    queue = scene.lock(QUEUE, 10)
    getting = scene.stack("queue.py:Queue.get", ("lease", 20), ("worker", 30))
    putting = scene.stack("queue.py:Queue.put", ("lease", 24), ("worker", 30))
    workers = [scene.thread(f"worker {i}", end_ms=1000.0) for i in range(threads)]
    giver = scene.thread("giver", end_ms=1000.0)
    for step in range(95):
        at = step * 10.0
        worker = workers[step % threads]
        by = workers[(step + 1) % threads] if give_back else giver
        start = max(0.0, at - 20.0)  # so that three of them are at work at a time
        scene.wait(queue, worker, start, at + 10.0, getting, by=by, waking=putting, wake=step + 1)
    return scene


def test_things_that_their_users_put_back_are_a_stock_with_too_little_in_it() -> None:
    found = lenders(give_back=True).finding("capacity-limit")
    assert found is not None
    assert found.lock is not None
    assert found.lock.site is not None
    assert found.lock.site.line == 10
    assert found.victims[0].site is not None
    assert found.victims[0].site.function == "lease"


def test_a_turn_that_goes_round_is_no_stock() -> None:
    scene = Scene()
    condition = scene.lock("threading.RLock in Condition", 10)
    waiting = scene.stack(("Turn.take", 20), ("player", 30))
    waking = scene.stack("threading.py:Condition.notify", ("Turn.pass_on", 24), ("player", 31))
    players = [scene.thread(f"player {i}", end_ms=1000.0) for i in range(5)]
    for step in range(95):
        player, before = players[step % 5], players[(step - 1) % 5]
        start = max(0.0, step * 10.0 - 40.0)
        scene.wait(
            condition, player, start, step * 10.0, waiting, by=before, waking=waking, wake=step + 1
        )
    assert scene.finding("capacity-limit") is None
    assert scene.diagnosis().verdict == "healthy"  # but no lock is acquitted
    assert "5 threads spend" in (summary := scene.diagnosis().summary)
    assert "where they wake one another" in summary


def test_one_that_its_own_signal_handler_wakes_waits_for_no_other() -> None:
    scene = Scene()
    event = scene.lock("threading.Lock in Event", 10)
    waiting = scene.stack("threading.py:Event.wait", ("main", 20))
    waking = scene.stack("threading.py:Event.set", ("on_signal", 24), ("main", 20))
    main = scene.thread("MainThread", end_ms=1000.0)
    for step in range(1, 10):
        start = step * 100.0
        scene.wait(event, main, start - 80.0, start, waiting, by=main, waking=waking, wake=step)
    diagnosis = scene.diagnosis()

    assert diagnosis.verdict == "healthy"
    assert diagnosis.summary.startswith("No lock limits this program")


def test_what_others_put_into_a_queue_is_no_stock() -> None:
    assert lenders(give_back=False).finding("capacity-limit") is None


def test_stages_of_a_pipeline_made_at_one_line_are_no_stock() -> None:
    scene = Scene()
    stages = [scene.thread(f"stage {i}", end_ms=1000.0) for i in range(3)]
    queues = [scene.lock(QUEUE, 10) for _ in range(3)]
    getting = scene.stack("queue.py:Queue.get", ("stage", 20))
    putting = scene.stack("queue.py:Queue.put", ("stage", 24))
    for step in range(90):
        for i, stage in enumerate(stages):
            by = stages[i - 1] if i else scene.main
            scene.wait(
                queues[i], stage, step * 10.0, step * 10.0 + 6.0, getting, by=by, waking=putting
            )
    assert scene.finding("capacity-limit") is None


def buffer(
    *, waker_outlives: bool, takes: int = 1, kind: str = "threading.RLock in Condition"
) -> Scene:
    """A buffer made of a condition: two threads wait for a third, which ends first or last.

    It takes the condition's lock `takes` times for each time that it ends their waits.
    """
    scene = Scene()
    condition = scene.lock(kind, 10)
    busy = scene.thread("busy", end_ms=950.0 if waker_outlives else 900.0)
    waiting = scene.stack(("Buffer.wait", 20), ("user", 30))
    waking = scene.stack(("Buffer.wake", 24), ("other", 40))
    working = scene.stack(("work", 50), ("other", 41))
    users = [scene.thread(f"user {i}", end_ms=920.0) for i in range(2)]
    for step in range(88):
        for user in users:
            at = step * 10.0
            scene.wait(
                condition, user, at + 2.0, at + 10.0, waiting, by=busy, waking=waking, wake=step + 1
            )
    scene.builder.add_counter(
        condition, busy, acquires=88 * takes, hold_histogram=[88 * takes] + [0] * 31
    )
    scene.seen(busy, working, 0.0, 880.0)
    return scene


def crowded_buffer(*, ends: str, producers: int = 20) -> Scene:
    """Many producers, of whom a consumer lets one go on each 10 ms; it works on what is left.

    It `ends` by ending, or waits for another item for good; or it ends with the producers.
    """
    scene = Scene()
    condition, other = scene.lock("threading.RLock in Condition", 10), scene.lock(QUEUE, 11)
    last_ms = {"late": 950.0, "waits": 0.0, "with them": 921.0}[ends]
    consumer = scene.thread("consumer", end_ms=last_ms)
    waiting = scene.stack(("Buffer.put", 20), ("produce", 30))
    waking = scene.stack(("Buffer.get", 24), ("consume", 40))
    threads = [scene.thread(f"producer {i}", end_ms=920.0) for i in range(producers)]
    for step in range(90):
        thread, end = threads[step % producers], (step + 1) * 10.0
        start = max(0.0, end - 10.0 * producers + 1.0)
        scene.wait(
            condition, thread, start, end, waiting, by=consumer, waking=waking, wake=step + 1
        )
    if ends == "waits":
        scene.wait(other, consumer, 950.0, 1000.0, waking, outcome=Outcome.OPEN)
    scene.builder.add_counter(condition, consumer, acquires=94, hold_histogram=[94] + [0] * 31)
    scene.seen(consumer, scene.stack(("store", 50), ("consume", 41)), 0.0, 940.0)
    return scene


@pytest.mark.parametrize(
    ("ends", "is_room"), [("late", True), ("waits", True), ("with them", False)]
)
def test_many_who_wait_for_long_do_not_hide_who_works_last(ends: str, *, is_room: bool) -> None:
    # A wait lasts 191 ms; the consumer outlives the producers by 30 ms, which is three items.
    found = crowded_buffer(ends=ends).finding("backpressure")
    assert (found is not None) == is_room


def shared_wait(*, by_caller: bool = True, among_themselves: bool = False) -> Scene:
    """Both sides of a buffer wait in one function, producers nearly always; a consumer ends last.

    It waits for the first item, as well. Two functions call the one that waits, or only one does;
    or producers end each other's waits.
    """
    scene = Scene()
    condition = scene.lock("threading.RLock in Condition", 10)
    consumer = scene.thread("consumer", end_ms=950.0)
    producers = [scene.thread(f"producer {i}", end_ms=920.0) for i in range(3)]
    put, get = ("Belt.put", 20), ("Belt.get" if by_caller else "Belt.put", 24)
    for_room = scene.stack("threading.py:Condition.wait", ("Belt.until", 14), put, ("produce", 30))
    for_item = scene.stack("threading.py:Condition.wait", ("Belt.until", 14), get, ("consume", 40))
    putting, getting = scene.stack(put, ("produce", 30)), scene.stack(get, ("consume", 40))
    scene.wait(condition, consumer, 1.0, 9.0, for_item, by=producers[0], waking=putting, wake=1)
    for step in range(1, 90):
        for at, producer in enumerate(producers):
            by = producers[at - 1] if among_themselves and step % 3 else consumer
            scene.wait(
                condition,
                producer,
                step * 10.0 + 1.0,
                step * 10.0 + 10.0,
                for_room,
                by=by,
                waking=getting,
                wake=step + 1,
            )
    scene.builder.add_counter(condition, consumer, acquires=91, hold_histogram=[91] + [0] * 31)
    scene.seen(consumer, scene.stack(("pack", 50), ("consume", 41)), 10.0, 940.0)
    return scene


def test_sides_that_wait_in_one_function_are_told_apart_by_who_calls_it() -> None:
    scene = shared_wait()
    found = scene.finding("backpressure")
    assert found is not None
    assert scene.diagnosis().verdict == "backpressure"
    assert [party.site.function for party in found.victims if party.site] == ["Belt.until"]
    assert [party.site.function for party in found.culprits if party.site] == ["pack"]
    assert "of the time of 3 producers is" in found.summary


@pytest.mark.parametrize("facts", [{"by_caller": False}, {"among_themselves": True}])
def test_threads_that_end_the_waits_of_their_own_kind_have_no_sides(facts: dict[str, bool]) -> None:
    assert shared_wait(**facts).finding("backpressure") is None


def slots(*, waiters: int = 3, busy: bool = True) -> Scene:
    """Producers take a semaphore that a consumer gives back when it has taken an item out."""
    scene = Scene()
    permits, other = scene.lock("threading.Semaphore", 10), scene.lock(QUEUE, 11)
    consumer = scene.thread("consumer", end_ms=990.0)
    putting = scene.stack("threading.py:Semaphore.acquire", ("put", 20), ("produce", 30))
    giving = scene.stack("threading.py:Semaphore.release", ("get", 24), ("consume", 31))
    producers = [scene.thread(f"producer {i}", end_ms=960.0) for i in range(waiters)]
    for step in range(95):
        at = step * 10.0
        for producer in producers:
            scene.wait(permits, producer, at + 1.0, at + 10.0, putting, by=consumer, waking=giving)
        if not busy:
            scene.wait(other, consumer, at, at + 9.0, giving, by=scene.main)
    scene.seen(consumer, scene.stack(("store", 40), ("consume", 31)), 0.0, 950.0)
    return scene


def test_slots_that_a_busy_consumer_gives_back_are_room_and_no_limit() -> None:
    scene = slots()
    found = scene.finding("backpressure")
    assert found is not None
    assert scene.diagnosis().verdict == "backpressure"
    assert "3 producers is" in found.summary
    assert scene.finding("capacity-limit") is None
    alone = slots(waiters=1).finding("backpressure")
    assert alone is not None
    assert "1 producer is" in alone.summary


def test_slots_that_a_consumer_gives_back_late_since_it_waits_itself_are_not_its_fault() -> None:
    assert slots(busy=False).finding("backpressure") is None


def test_what_needs_a_core_gains_no_more_than_there_are_cores() -> None:
    program = Program(wall_s=1.0, cpu_s=1.0, work_cpu_s=1.0, cores=2)
    assert program.largest_gain(1.0, running=1.0) == pytest.approx(2.0)
    assert program.largest_gain(0.5, running=1.0) == pytest.approx(1.0 / 0.75)
    assert program.largest_gain(0.5, running=0.0) == pytest.approx(2.0)


def test_in_a_buffer_made_of_conditions_consumers_outlive_producers() -> None:
    assert buffer(waker_outlives=True).diagnosis().verdict == "backpressure"
    assert buffer(waker_outlives=False).diagnosis().verdict == "starved-by-producer"


def test_a_condition_on_a_lock_of_its_own_makes_a_buffer_like_any_other() -> None:
    assert buffer(waker_outlives=True, kind="threading.Lock").diagnosis().verdict == "backpressure"


def test_who_takes_the_lock_to_come_in_and_to_leave_consumes_nothing() -> None:
    assert buffer(waker_outlives=True, takes=2).finding("backpressure") is None


def test_waiting_costs_nothing_only_if_there_is_next_to_nothing_to_do() -> None:
    idle = producer_and_consumers(work_ms=0.2, consumers=1).finding("idle-wait")
    assert idle is not None
    assert "cost nothing" in idle.summary
    fed = producer_and_consumers(state=State.BLOCKED, call=Call.SOCKET, elsewhere=False)
    found = fed.finding("idle-wait")
    assert found is not None
    assert "cost nothing" not in found.summary
    assert "`produce` (program.py:31) to give them something to do" in found.summary


def waiting_for_an_event(*, main: bool, outcome: Outcome, by_waiter: bool = False) -> Scene:
    """A thread waits for an event nearly all the time; a busy one sets it, or nobody does.

    With `by_waiter`, another thread waits meanwhile for what the waiting one does afterwards.
    """
    scene = Scene()
    event, answer = scene.lock("threading.Lock in Event", 10), scene.lock(QUEUE, 11)
    setter = scene.thread("setter", end_ms=950.0)
    other = scene.thread("other", end_ms=950.0)
    waiter = scene.main if main else other
    waiting = scene.stack("threading.py:Event.wait", ("ask", 20))
    setting = scene.stack("threading.py:Event.set", ("serve", 31))
    by = setter if outcome == Outcome.ACQUIRED else 0
    scene.wait(event, waiter, 10.0, 940.0, waiting, by=by, waking=setting, outcome=outcome)
    if by_waiter:
        getting = scene.stack("queue.py:Queue.get", ("need", 40))
        scene.wait(answer, setter, 20.0, 945.0, getting, by=waiter, waking=waiting)
    else:
        scene.seen(setter, scene.stack(("serve", 30)), 0.0, 940.0)
    return scene


def test_the_main_thread_that_waits_for_another_is_not_said_to_wait_for_nothing() -> None:
    found = waiting_for_an_event(main=True, outcome=Outcome.ACQUIRED).finding("idle-wait")
    assert found is not None
    assert "for `serve` (program.py:30) to let it go on" in found.summary


def test_a_wait_that_a_timeout_ends_is_not_said_to_cost_nothing() -> None:
    found = waiting_for_an_event(main=False, outcome=Outcome.TIMED_OUT).finding("idle-wait")
    assert found is not None
    assert "nobody wakes it" in found.summary
    assert "cost nothing" not in found.summary


@pytest.mark.parametrize(
    ("outcome", "said"),
    [(Outcome.ACQUIRED, "it is not recorded who wakes it"), (Outcome.OPEN, "nobody wakes it")],
)
def test_a_wait_that_somebody_unknown_ends_is_not_said_to_be_ended_by_nobody(
    outcome: Outcome, said: str
) -> None:
    scene = Scene()
    waiter = scene.thread("waiter", end_ms=950.0)
    condition = scene.lock("pthread_cond", 10)
    scene.wait(condition, waiter, 10.0, 940.0, scene.stack(("consume", 20)), outcome=outcome)
    found = scene.finding("idle-wait")
    assert found is not None
    assert f"and for most of that {said}" in found.summary


def test_who_waits_in_vain_while_others_wait_for_him_is_not_idle() -> None:
    scene = waiting_for_an_event(main=False, outcome=Outcome.TIMED_OUT, by_waiter=True)
    assert not any(
        party.site is not None and party.site.function == "ask"
        for finding in scene.diagnosis().findings
        for party in finding.victims
    )


@pytest.mark.parametrize("events", [1, 60])
def test_who_makes_a_signal_for_each_wait_is_not_said_to_have_nothing_to_do(events: int) -> None:
    scene = Scene()
    asking, giving = scene.stack(("Turn.take", 20)), scene.stack(("Turn.give", 30))
    keeper = scene.thread("keeper")
    asker = scene.thread("asker", end_ms=980.0)
    made = [scene.lock("threading.Lock in Event", 10) for _ in range(events)]
    for turn in range(60):
        scene.wait(
            made[turn % events],
            asker,
            turn * 16.0,
            turn * 16.0 + 15.9,
            asking,
            by=keeper,
            waking=giving,
            wake=turn + 1,
        )
    summary = scene.diagnosis().summary
    assert ("No recorded lock is at fault" in summary) == (events == 60)
    assert ("cost nothing" in summary) == (events == 1)


def signals_for_each_wait(*, among_themselves: bool) -> Scene:
    """Three threads, of whom two wait at a time, each for a new signal; by whom it is given."""
    scene = Scene()
    taking, giving = scene.stack(("Token.take", 20)), scene.stack(("Token.give", 30))
    keeper = scene.thread("keeper")
    threads = [scene.thread(f"thread {k}", end_ms=980.0) for k in range(3)]
    for turn in range(60):
        scene.wait(
            scene.lock("threading.Lock", 10),
            threads[turn % 3],
            max(0.0, turn * 16.0 - 16.0),
            turn * 16.0 + 15.0,
            taking,
            by=threads[(turn + 2) % 3] if among_themselves else keeper,
            waking=giving,
            wake=1,
        )
    return scene


def test_threads_that_give_one_another_signals_are_not_idle() -> None:
    found = signals_for_each_wait(among_themselves=True).diagnosis()
    assert found.verdict == "healthy"
    assert found.summary.startswith("Nobody is accused: 3 threads spend 6")
    assert "in `Token.take`, where they wake one another" in found.summary
    assert signals_for_each_wait(among_themselves=False).diagnosis().verdict == "idle-wait"


def test_a_token_in_a_queue_is_no_lock_that_is_acquitted() -> None:
    scene = Scene()
    queue = scene.lock(QUEUE, 10)
    getting = scene.stack("queue.py:Queue.get", ("work", 20))
    putting = scene.stack("queue.py:Queue.put", ("work", 24))
    workers = [scene.thread(f"worker {k}", end_ms=1000.0) for k in range(3)]
    for step in range(1, 95):
        worker, before = workers[step % 3], workers[(step - 1) % 3]
        start = max(0.0, step * 10.0 - 19.0)  # one at a time is at work
        scene.wait(queue, worker, start, step * 10.0, getting, by=before, waking=putting, wake=step)
    diagnosis = scene.diagnosis()
    assert diagnosis.verdict == "healthy"
    assert diagnosis.findings == ()
    assert "3 threads spend" in diagnosis.summary
    assert "in `work`, where they wake one another" in diagnosis.summary


def test_who_is_woken_in_vain_until_one_of_his_kind_gives_way_is_not_idle() -> None:
    scene = Scene()
    condition = scene.lock("threading.Lock in Condition", 10)
    waiting = scene.stack(("Monitor.acquire", 20), ("guest", 30))
    waking = scene.stack("threading.py:Condition.notify", ("Monitor.release", 24), ("hot", 31))
    hot = scene.thread("hot", end_ms=1000.0)
    guests = [scene.thread(f"guest {k}", end_ms=1000.0) for k in range(3)]
    for turn in range(9):
        for k, guest in enumerate(guests):
            for step in range(10):  # nine times by the one that takes it again at once
                start, is_last = turn * 100.0 + step * 10.0, step == 9
                scene.wait(
                    condition,
                    guest,
                    start,
                    start + 10.0,
                    waiting,
                    by=guests[k - 1] if is_last and k else hot,
                    waking=waking,
                    wake=turn * 10 + step + 1,
                    again=step > 0,
                )
    found = scene.diagnosis()
    assert found.verdict == "healthy"
    assert "3 threads spend 90 % of their time in `Monitor.acquire`, where they" in found.summary
