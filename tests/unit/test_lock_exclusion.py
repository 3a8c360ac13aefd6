"""A lock keeps native threads apart: no GIL helps it here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contention_lab.locks import KINDS, McsLock, SpinLock, TicketLock
from contention_lab.native._core import lock_hammer

if TYPE_CHECKING:
    from collections.abc import Callable

VARIANTS: dict[str, Callable[[], Any]] = {
    **KINDS,
    "spinlock-park": lambda: SpinLock(park_after=100),
    "ticket-yield": lambda: TicketLock(yield_after=20),
    "mcs-yield": lambda: McsLock(yield_after=20),
}
FIFO_SPINNERS = {
    "ticket",
    "mcs",
}  # with more threads than cores each hand-over takes a scheduler's slice


def rounds_for(name: str, rounds: int) -> int:
    return rounds // 50 if name in FIFO_SPINNERS else rounds


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_change_made_under_the_lock_is_there(name: str, threads: int) -> None:
    lock, rounds = VARIANTS[name](), rounds_for(name, 2000)

    assert lock_hammer(lock, threads, rounds, 0) == (threads * rounds, 0)
    assert not lock.locked()


@pytest.mark.parametrize("name", VARIANTS)
def test_sixty_four_threads_that_keep_giving_up_neither_enter_together_nor_hang(name: str) -> None:
    lock, rounds = VARIANTS[name](), rounds_for(name, 500)

    had, given_up = lock_hammer(lock, 64, rounds, 20_000)

    assert had + given_up == 64 * rounds
    assert not lock.locked()
    assert lock.acquire(blocking=False)
