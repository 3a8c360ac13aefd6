"""What a spinlock that its owner takes back says about the GIL, on traces made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.simulate.history import history
from contention_lab.simulate.packing import Op, OpFlag
from contention_lab.simulate.retaken import with_gil_kept
from contention_lab.trace import load
from contention_lab.trace.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import Trace

US = 1_000
TURNS = 12


def recorded(folder: Path, owners: list[int], lock_type: str = "SpinLock") -> Trace:
    """Return two threads, of which the owner of a turn holds for 8 us, 2 us after the one before.

    The other one waits all along. The GIL was held for a tenth of the time, in samples that fall
    into holds.
    """
    end = 10 * US * len(owners)
    builder = TraceBuilder(duration_ns=end, meta={"python": {"gil": True}})
    lock = builder.add_lock(lock_type)
    threads = [builder.add_thread(end_ns=end, cpu_ns=end // 2) for _ in range(2)]
    asked = [0, 0]
    for turn, owner in enumerate(owners):
        began = turn * 10 * US + 2 * US
        builder.add_hold(lock, threads[owner], began, began + 8 * US)
        if turn == 0 or owners[turn - 1] != owner:
            builder.add_wait(lock, threads[owner], asked[owner], began)
        asked[owner] = began + 8 * US
    other = 1 - owners[-1]
    builder.add_wait(lock, threads[other], asked[other], end)
    for i in range(10 * len(owners)):
        builder.add_gil_sample(i * US, threads[owners[-1]], held=i % 10 == 5)
    builder.write(folder / "made.clt")
    return load(folder / "made.clt")


def with_gil(trace: Trace, thread: int) -> tuple[float, float]:
    """Return the shares of computation with the GIL, outside of holds and in them."""
    spent = {(inside, gil): 0.0 for inside in (False, True) for gil in (False, True)}
    inside = False
    for code, flags, _, _, ns in history(trace, thread).ops.tolist():
        if code == Op.COMPUTE:
            spent[inside, bool(flags & OpFlag.GIL)] += ns
        elif code in (Op.ACQUIRE, Op.RELEASE):
            inside = code == Op.ACQUIRE
    return tuple(  # type: ignore[return-value]
        spent[inside, True] / (spent[inside, True] + spent[inside, False])
        for inside in (False, True)
    )


def test_who_always_takes_the_lock_back_kept_the_gil_meanwhile(tmp_path: Path) -> None:
    trace = recorded(tmp_path, [0] * TURNS)
    thread = next(iter(trace.threads))

    starts, ends = with_gil_kept(trace, thread)
    outside, _ = with_gil(trace, thread)

    assert len(starts) == TURNS - 1
    assert set((ends - starts).tolist()) == {2 * US}
    assert outside > 0.9


@pytest.mark.parametrize("owners", [[0, 1] * TURNS, [0] * 5], ids=["in turn", "seldom"])
def test_turns_that_change_and_few_of_them_say_nothing(tmp_path: Path, owners: list[int]) -> None:
    trace = recorded(tmp_path, owners)

    assert all(not len(with_gil_kept(trace, thread)[0]) for thread in trace.threads)


def test_waiters_that_do_not_need_the_gil_say_nothing(tmp_path: Path) -> None:
    trace = recorded(tmp_path, [0] * TURNS, lock_type="Lock")
    thread = next(iter(trace.threads))

    assert not len(with_gil_kept(trace, thread)[0])
    assert with_gil(trace, thread)[0] < 0.5


def test_a_lock_that_nobody_waited_for_says_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder(duration_ns=10 * US * TURNS)
    lock, thread = builder.add_lock("SpinLock"), builder.add_thread(end_ns=10 * US * TURNS)
    for turn in range(TURNS):
        builder.add_hold(lock, thread, turn * 10 * US, turn * 10 * US + 8 * US)
    builder.write(tmp_path / "made.clt")

    assert not len(with_gil_kept(load(tmp_path / "made.clt"), thread)[0])
