"""Buffers with one condition for both sides: who is woken in vain is still waiting."""

from __future__ import annotations

import pytest
from coordination_scene import Scene

from contention_lab.analysis.coordination import Purpose, coordination
from contention_lab.trace import parse

STEPS = 90


def belt(*, waits: int = 0) -> Scene:
    """Each parcel that a packer takes wakes all three lines; one lays its own, and wakes the rest.

    These are woken in vain. At the end the main thread lays a mark behind the parcels; packers end
    soon after they have taken it. They wait for a parcel themselves `waits` times.
    """
    scene = Scene()
    condition = scene.lock("threading.RLock in Condition", 10)
    packers = [scene.thread(f"packer {i}", end_ms=955.0) for i in range(2)]
    lines = [scene.thread(f"line {i}", end_ms=930.0) for i in range(3)]
    laying = scene.stack(("Belt.lay", 20), ("line", 30))
    lifting = scene.stack(("Belt.lift", 24), ("packer", 40))
    for step in range(STEPS):
        packer, lucky, at = packers[step % 2], lines[step % 3], step * 10.0
        for line in lines:
            again = bool(step) and line != lines[(step - 1) % 3]
            number = 2 * step + 1
            scene.wait(
                condition, line, at + 0.2, at + 9.9, laying,
                by=packer, waking=lifting, wake=number, again=again,
            )  # fmt: skip
            if line != lucky and step < STEPS - 1:
                scene.wait(
                    condition, line, at + 9.9, at + 10.1, laying,
                    by=lucky, waking=laying, wake=number + 1, again=True,
                )  # fmt: skip
    scene.wait(condition, scene.main, 935.0, 950.0, laying, by=packers[0], waking=lifting, wake=999)
    for packer in packers:
        for at in range(waits):
            scene.wait(condition, packer, at * 20.0, at * 20.0 + 0.1, lifting, by=lines[0])
        count = STEPS // 2 + waits
        scene.builder.add_counter(
            condition, packer, acquires=count, hold_histogram=[count] + [0] * 31
        )
        scene.seen(packer, scene.stack(("pack", 50), ("packer", 41)), 0.0, 940.0)
        joined = scene.lock("threading.Thread", 12)
        scene.wait(joined, scene.main, 951.0, 955.0, laying, by=packer)
    return scene


@pytest.mark.parametrize("waits", [0, 45])
def test_a_buffer_that_wakes_all_is_full_all_the_same(waits: int) -> None:
    # A packer that waits takes the lock back after that: it still takes it once for each parcel.
    found = belt(waits=waits).finding("backpressure")
    assert found is not None
    assert "the 2 consumers are" in found.summary
    assert [party.site.function for party in found.culprits if party.site] == ["pack"]


def test_a_wait_is_ended_by_who_woke_its_waiter_for_good() -> None:
    trace = parse(belt().builder.bytes())
    (case,) = (one for one in coordination(trace) if one.purpose is Purpose.CONDITION)
    names = {trace.thread(one).name for one in case.wakers}
    in_vain = case.last != range(len(case.last))

    assert int(in_vain.sum()) > STEPS
    assert {trace.thread(one).name for one in case.waker[in_vain].tolist()} > {"line 0"}
    assert names == {"packer 0", "packer 1"}
    assert case.self_ended_share == 0.0 < case.self_supplied_share


def monitor(*, apart: int) -> Scene:
    """A thread gives a lock of the program's own back, and takes it again before the woken run.

    It has woken `apart` times until they do, and they bear the number of the last.
    """
    scene = Scene()
    condition = scene.lock("threading.RLock in Condition", 10)
    hot = scene.thread("hot", end_ms=1000.0)
    guests = [scene.thread(f"guest {k}", end_ms=1000.0) for k in range(4)]
    waiting = scene.stack(("Monitor.acquire", 20), ("guest", 30))
    waking = scene.stack("threading.py:Condition.notify", ("Monitor.release", 24), ("hot", 31))
    for step in range(90):
        for guest in guests:
            scene.wait(
                condition, guest, step * 10.0 + 2.0, step * 10.0 + 10.0, waiting,
                by=hot, waking=waking, wake=(step + 1) * apart, again=step > 0,
            )  # fmt: skip
    return scene


def test_threads_woken_one_after_the_other_before_any_of_them_runs_are_no_herd() -> None:
    found = monitor(apart=1).finding("thundering-herd")
    assert found is not None
    assert "wakes 4.0 threads at a time" in found.summary
    assert monitor(apart=4).finding("thundering-herd") is None
    assert monitor(apart=2).finding("thundering-herd") is None
