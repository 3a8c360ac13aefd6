"""Writers that readers starve, behind locks of any make; and programs that only look like it."""

from __future__ import annotations

import pytest
from coordination_scene import Call, Scene, State

from contention_lab.trace import HoldFlag, Outcome, WaitKind


def readers_and_writer(
    *,
    readers: int = 4,
    inside_ms: float = 6.0,
    outside_ms: float = 0.2,
    satisfied: int = 0,
    state: State = State.BLOCKED,
) -> Scene:
    """Readers that come in and go out under a condition's lock while a writer waits on it."""
    scene = Scene()
    writer = scene.thread("writer", 0.0, 960.0)
    lock = scene.lock("threading.RLock in Condition", 10)
    enter, leave = scene.frame("RWLock.acquire_read", 20), scene.frame("RWLock.release_read", 24)
    waiting = scene.stack(
        "threading.py:Condition.wait_for", ("RWLock.acquire_write", 28), ("main", 50)
    )
    reading = scene.stack(("reader", 37))
    coming = scene.stack(("RWLock.acquire_read", 20), ("reader", 36))
    going = scene.stack(("RWLock.release_read", 24), ("reader", 38))
    waking = scene.stack(("RWLock.release_read", 26), ("reader", 38))
    parts = satisfied + 1
    for part in range(parts):
        start, end = 50.0 + part * 900.0 / parts, 50.0 + (part + 1) * 900.0 / parts - 1.0
        scene.wait(
            lock,
            writer,
            start,
            end,
            waiting,
            by=0 if part == satisfied else 3 + part % readers,
            waking=waking,
            wake=part + 1,
            outcome=Outcome.TIMED_OUT if part == satisfied else Outcome.ACQUIRED,
        )
    for i in range(readers):
        reader = scene.thread(f"reader {i}", 0.0, 955.0)
        at = 50.0 + i * (inside_ms + outside_ms) / readers
        while at < 949.0:
            scene.visit(lock, reader, at, enter, coming)
            scene.visit(lock, reader, at + inside_ms, leave, going)
            at += inside_ms + outside_ms
        call = Call.SLEEP if state is State.BLOCKED else 0
        scene.seen(reader, reading, 60.0, 940.0, state, call)
    return scene


def test_overlapping_readers_starve_a_writer() -> None:
    scene = readers_and_writer()
    found = scene.finding("writer-starvation")
    assert found is not None
    assert scene.diagnosis().verdict == "writer-starvation"
    assert found.lock is not None
    assert found.victims[0].site is not None
    assert found.victims[0].site.function == "RWLock.acquire_write"
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "reader"
    assert "acquire_read" in found.summary
    assert "never gets in" in found.summary
    assert scene.finding("idle-wait") is None


def test_readers_that_leave_gaps_do_not_starve_a_writer() -> None:
    scene = readers_and_writer(readers=2, inside_ms=2.0, outside_ms=6.0)
    assert scene.finding("writer-starvation") is None


def test_one_reader_starves_nobody() -> None:
    assert readers_and_writer(readers=1).finding("writer-starvation") is None


def test_a_waiter_that_gets_what_it_waits_for_again_and_again_is_not_starved() -> None:
    assert readers_and_writer(satisfied=60).finding("writer-starvation") is None


def test_a_condition_that_others_pass_at_one_line_only_is_idle() -> None:
    scene = Scene()
    lock = scene.lock("threading.RLock in Condition", 10)
    put = scene.frame("Jobs.put", 20)
    waiting = scene.stack(("Jobs.take", 28), ("worker", 50))
    worker = scene.thread("worker")
    scene.wait(lock, worker, 10.0, 990.0, waiting, outcome=Outcome.OPEN)
    for i in range(3):
        other = scene.thread(f"other {i}")
        for step in range(100):
            scene.visit(lock, other, 20.0 + step * 9.0 + i, put)
    assert scene.finding("writer-starvation") is None
    assert scene.diagnosis().verdict == "idle-wait"


def tickets(*, collects: bool = True, readers: int = 3, rest_ms: float = 0.0) -> Scene:
    """Readers with one permit each for 8 ms; a writer that waits for the last of five permits."""
    scene = Scene()
    lock = scene.lock("threading.Lock in Semaphore", 10)
    writing, reading = scene.stack(("Archive.compact", 20)), scene.stack(("Archive.read", 30))
    site = scene.frame("Archive.read", 30)
    for start in (50.0, 500.0):
        if collects:
            for permit in range(2):
                scene.hold(lock, scene.main, start - 10.0 + permit, start + 401.0, waiters=1)
        scene.wait(
            lock,
            scene.main,
            start,
            start + 400.0,
            writing,
            outcome=Outcome.TIMED_OUT,
            kind=WaitKind.CONTENTION,
        )
    for i in range(readers):
        reader, at = scene.thread(f"reader {i}"), 20.0 + 2.0 * i
        while at < 980.0:
            scene.hold(lock, reader, at, at + 8.0, site=site, stack=reading, waiters=1)
            at += 8.0 + rest_ms
        scene.builder.add_counter(lock, reader, acquires=100)
    return scene


def test_readers_that_take_permits_again_starve_who_collects_them() -> None:
    scene = tickets()
    found = scene.finding("writer-starvation")
    assert found is not None
    assert scene.diagnosis().verdict == "writer-starvation"
    assert scene.finding("capacity-limit") is None
    for parties, function in ((found.victims, "Archive.compact"), (found.culprits, "Archive.read")):
        assert parties[0].site is not None
        assert parties[0].site.function == function


def test_who_waits_for_one_permit_is_no_writer() -> None:
    assert tickets(collects=False).finding("writer-starvation") is None


def test_readers_of_permits_that_leave_gaps_starve_nobody() -> None:
    assert tickets(readers=1, rest_ms=20.0).finding("writer-starvation") is None


def vacant(*, clears: int = 100, woken: int = 0, readers: int = 3) -> Scene:
    """A thread that waits for an event which others use all the time."""
    scene = Scene()
    event = scene.lock("threading.Lock in Event", 10)
    waiting, reading = scene.stack(("Door.write", 20)), scene.stack(("reader", 30))
    for turn in range(3):
        scene.wait(
            event,
            scene.main,
            50.0 + 300.0 * turn,
            340.0 + 300.0 * turn,
            waiting,
            by=2 if woken else 0,
            wake=turn + 1,
            outcome=Outcome.ACQUIRED if woken else Outcome.TIMED_OUT,
        )
    scene.builder.add_counter(event, scene.main, acquires=3)
    for i in range(readers):
        reader = scene.thread(f"reader {i}")
        scene.builder.add_counter(event, reader, acquires=clears)
        scene.seen(reader, reading, 20.0, 980.0, State.BLOCKED, Call.SLEEP)
    return scene


def test_readers_that_keep_clearing_an_event_starve_who_waits_for_it() -> None:
    scene = vacant()
    found = scene.finding("writer-starvation")
    assert found is not None
    assert scene.diagnosis().verdict == "writer-starvation"
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "reader"
    assert scene.finding("idle-wait") is None


@pytest.mark.parametrize("changes", [{"clears": 2}, {"woken": 1}, {"readers": 1}])
def test_an_event_that_is_set_now_and_then_starves_nobody(changes: dict[str, int]) -> None:
    assert vacant(**changes).finding("writer-starvation") is None


def lightswitch(*, again: bool = True, passages: int = 200) -> Scene:
    """A lock held for long by a thread that passes its guard again, while a writer waits."""
    scene = Scene()
    room, guard = scene.lock("threading.Lock", 10), scene.lock("threading.Lock", 11)
    enter = scene.frame("Room.enter", 24)
    taking = scene.stack(("Room.enter", 27), ("guest", 49))
    passing = scene.stack(("Room.enter", 24), ("guest", 49))
    visiting = scene.stack(("guest", 50))
    cleaning = scene.stack(("Room.clean", 37), ("main", 63))
    guests = [scene.thread(f"guest {i}") for i in range(4)]
    scene.hold(room, guests[0], 40.0, 990.0, site=scene.frame("Room.enter", 27), waiters=1)
    scene.builder.add_order(guests[0], room, {guard: enter}, stack=taking)
    if again:
        scene.builder.add_order(guests[0], guard, {room: enter}, stack=passing)
    for guest in guests:
        scene.builder.add_counter(guard, guest, acquires=passages)
    scene.builder.add_wait(
        room,
        scene.main,
        50_000_000,
        980_000_000,
        stack=cleaning,
        holder=guests[0],
        holder_stack=visiting,
        outcome=Outcome.TIMED_OUT,
    )
    return scene


def test_a_lock_that_the_first_takes_and_the_last_gives_back_starves_who_waits_for_it() -> None:
    scene = lightswitch()
    found = scene.finding("writer-starvation")
    assert found is not None
    assert found.lock is not None
    assert found.lock.site is not None
    assert found.lock.site.line == 10
    assert found.culprits[0].site is not None
    assert found.culprits[0].site.function == "guest"


def semaphore_switch(*, permits: int = 1, handed: bool = True, passages: int = 200) -> Scene:
    """The same with a semaphore: its inner lock is recorded under the guard, both ways."""
    scene = Scene()
    inner = scene.lock("threading.Lock in Semaphore", 10)
    room, guard = scene.lock("threading.Semaphore", 10), scene.lock("threading.Lock", 11)
    enter, leave = scene.frame("enter", 24), scene.frame("leave", 30)
    taking = scene.stack("threading.py:Semaphore.acquire", ("enter", 27), ("guest", 49))
    giving = scene.stack("threading.py:Semaphore.release", ("leave", 33), ("guest", 51))
    cleaning = scene.stack("threading.py:Semaphore.acquire", ("clean", 37), ("main", 63))
    guests = [scene.thread(f"guest {i}") for i in range(4)]
    for guest in guests[:permits]:
        scene.hold(
            room, guest, 40.0, 990.0, site=enter, waiters=1, flags=int(HoldFlag.HANDED_OFF) * handed
        )
    scene.builder.add_order(guests[1], inner, {guard: leave}, stack=giving)
    scene.builder.add_order(guests[0], inner, {guard: enter}, stack=taking)
    for guest in guests:
        scene.builder.add_counter(guard, guest, acquires=passages if guest == guests[0] else 200)
    scene.builder.add_wait(
        room, scene.main, 50_000_000, 980_000_000, stack=cleaning, outcome=Outcome.TIMED_OUT
    )
    return scene


def test_a_permit_that_the_first_takes_and_the_last_gives_back_starves_who_waits_for_it() -> None:
    found = semaphore_switch().finding("writer-starvation")
    assert found is not None
    assert found.lock is not None
    assert found.lock.type == "threading.Semaphore"
    assert "`enter`" in found.summary  # giving back is no way in


def test_who_takes_the_permit_and_gives_it_back_has_come_in_often_meanwhile() -> None:
    assert semaphore_switch(handed=False).finding("writer-starvation") is not None
    assert semaphore_switch(handed=False, passages=4).finding("writer-starvation") is None


def test_one_of_several_permits_is_no_switch() -> None:
    assert semaphore_switch(permits=2).finding("writer-starvation") is None


def test_a_writer_that_gets_in_is_not_called_starved_by_a_producer() -> None:
    scene = readers_and_writer(satisfied=60, state=State.RUNNABLE)
    assert scene.finding("writer-starvation") is None
    assert scene.finding("starved-by-producer") is None


def test_a_lock_that_is_simply_held_for_long_has_no_readers() -> None:
    assert lightswitch(again=False).finding("writer-starvation") is None


def test_a_guard_that_is_hardly_passed_lets_nobody_overtake() -> None:
    assert lightswitch(passages=3).finding("writer-starvation") is None
