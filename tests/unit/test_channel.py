"""The channel: order, bounds, ends, misuse, and what it owns."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import pytest

from contention_lab.locks import Channel, ClosedError

SENDERS, EACH = 32, 300
SIZES = [None, 1, 8]


def run(*targets: Any) -> list[threading.Thread]:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def send_all(channel: Channel[int], count: int) -> None:
    for number in range(count):
        channel.send(number)


def until(condition: Any) -> None:
    while not condition():
        threading.Event().wait(0.001)


@pytest.mark.parametrize("maxsize", SIZES)
def test_every_item_comes_once_and_in_the_order_of_its_sender(maxsize: int | None) -> None:
    channel = Channel[tuple[int, int]](maxsize=maxsize)

    def send(sender: int) -> None:
        for number in range(EACH):
            channel.send((sender, number))

    senders = run(*(lambda sender=sender: send(sender) for sender in range(SENDERS)))
    numbers: list[list[int]] = [[] for _ in range(SENDERS)]
    for _ in range(SENDERS * EACH):
        sender, number = channel.receive(timeout=60)
        numbers[sender].append(number)
    join(senders)
    assert numbers == [list(range(EACH))] * SENDERS
    assert len(channel) == 0


@pytest.mark.parametrize("maxsize", [1, 8])
def test_a_bounded_channel_never_holds_more(maxsize: int) -> None:
    channel, largest = Channel[int](maxsize=maxsize), 0
    senders = run(*[lambda: send_all(channel, 100)] * 16)
    for _ in range(1600):
        largest = max(largest, len(channel))
        channel.receive(timeout=60)
    join(senders)
    assert 1 <= largest <= maxsize


def test_a_full_channel_takes_nothing_at_once_or_in_time() -> None:
    channel = Channel[int](maxsize=2)
    channel.send(1)
    assert channel.try_send(2) is True
    assert channel.try_send(3) is False
    for timeout in (0, 0.001):
        with pytest.raises(TimeoutError, match="no room in time"):
            channel.send(3, timeout=timeout)
    assert [channel.receive(), channel.receive()] == [1, 2]
    channel.send(4, timeout=0)
    assert channel.receive() == 4


def test_an_empty_channel_gives_nothing_at_once_or_in_time() -> None:
    channel = Channel[int]()
    assert channel.try_receive() is None
    assert channel.try_receive("nothing") == "nothing"
    for timeout in (0, 0.001):
        with pytest.raises(TimeoutError, match="no item in time"):
            channel.receive(timeout=timeout)
    channel.send(1)
    assert channel.try_receive("nothing") == 1


def test_what_was_sent_before_the_end_is_received_and_then_it_is_over() -> None:
    channel = Channel[int]()
    for number in range(3):
        channel.send(number)
    channel.close()
    channel.close()
    assert channel.closed
    for send in (channel.send, channel.try_send):
        with pytest.raises(ClosedError, match="is closed"):
            send(4)
    assert channel.receive() == 0
    assert list(channel) == [1, 2]
    assert list(channel) == []
    for receive in (channel.receive, channel.try_receive):
        with pytest.raises(ClosedError):
            receive()


def test_the_end_wakes_the_receiver_and_all_senders() -> None:
    full, empty, ends = Channel[int](maxsize=1), Channel[int](), list[str]()
    full.send(0)

    def attempt(what: Any) -> None:
        try:
            what()
        except ClosedError:
            ends.append("closed")

    threads = run(*[lambda: attempt(lambda: full.send(1))] * 5, lambda: attempt(empty.receive))
    full.close()
    empty.close()
    join(threads)
    assert ends == ["closed"] * 6
    assert list(full) == [0]


def test_nothing_sent_is_lost_when_the_end_comes_meanwhile() -> None:
    for _ in range(20):
        channel, sent = Channel[int](), list[int]()

        def send(channel: Channel[int] = channel, sent: list[int] = sent) -> None:
            try:
                while True:
                    channel.send(1)
                    sent.append(1)
            except ClosedError:
                pass

        threads = run(send, send, lambda channel=channel: channel.close())
        received = sum(channel)
        join(threads)
        assert received == len(sent)


def test_a_second_receiver_at_the_same_time_is_told_so_and_a_later_one_is_not() -> None:
    channel, got = Channel[int]("jobs"), list[int]()
    first = run(lambda: got.append(channel.receive()))

    def has_receiver() -> bool:
        try:
            channel.try_receive()
        except RuntimeError as error:
            return "'jobs'" in str(error) and "one receives at a time" in str(error)
        return False

    until(has_receiver)
    channel.send(1)
    join(first)
    channel.send(2)
    assert [*got, channel.receive()] == [1, 2]


def test_threads_may_take_turns_as_the_receiver() -> None:
    channel, turn, got = Channel[int](), threading.Lock(), list[int]()

    def receive() -> None:
        for _ in range(50):
            with turn:
                got.append(channel.receive(timeout=60))

    receivers = run(*[receive] * 32)
    senders = run(*[lambda: send_all(channel, 50)] * 32)
    join(receivers + senders)
    assert sorted(got) == sorted([*range(50)] * 32)


@pytest.mark.parametrize("maxsize", SIZES)
def test_a_channel_owns_its_items_until_they_are_received(maxsize: int | None) -> None:
    channel, item = Channel[object](maxsize=maxsize), object()
    before = sys.getrefcount(item)
    channel.send(item)
    assert sys.getrefcount(item) == before + 1
    got = channel.receive()
    assert got is item
    del got
    assert sys.getrefcount(item) == before
    channel.send(item)
    if maxsize == 1:
        assert channel.try_send(item) is False
        with pytest.raises(TimeoutError):
            channel.send(item, timeout=0.001)
    channel.close()
    with pytest.raises(ClosedError):
        channel.send(item)
    assert sys.getrefcount(item) == before + 1
    del channel
    assert sys.getrefcount(item) == before


def test_a_channel_that_contains_itself_is_garbage() -> None:
    channel = Channel[Any]()
    channel.send([channel])
    gone = weakref.ref(channel)
    del channel
    gc.collect()
    assert gone() is None


def test_channels_in_channels_go_without_recursion() -> None:
    outer = Channel[Any]()
    for _ in range(100_000):
        inner, outer = outer, Channel[Any]()
        outer.send(inner)
    del inner, outer


def test_subclasses_and_names_work() -> None:
    class Jobs(Channel[int]):
        pass

    jobs = Jobs("jobs", maxsize=3)
    jobs.send(1)
    assert (jobs.name, jobs.maxsize, jobs.closed, len(jobs)) == ("jobs", 3, False, 1)
    assert "open" in repr(jobs)
    assert "'jobs', 1 inside" in repr(jobs)
    assert Channel().maxsize is None
    with pytest.raises(TypeError):
        pickle.dumps(Channel())


untyped: Any = Channel


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: untyped(3), TypeError),
        (lambda: untyped("a", 3), TypeError),
        (lambda: untyped(maxsize=0), ValueError),
        (lambda: untyped(maxsize=-1), ValueError),
        (lambda: untyped(maxsize=1.5), TypeError),
        (lambda: untyped(maxsize=1 << 70), OverflowError),
        (lambda: untyped().send(), TypeError),
        (lambda: untyped().send(1, 2, 3), TypeError),
        (lambda: untyped().send(1, block=False), TypeError),
        (lambda: untyped().send(1, timeout="1"), TypeError),
        (lambda: untyped().send(1, timeout=-2), ValueError),
        (lambda: untyped().receive(1, 2), TypeError),
        (lambda: untyped().receive(timeout=float("nan")), ValueError),
        (lambda: untyped().receive(timeout=1e20), OverflowError),
        (lambda: untyped().try_receive(1, 2), TypeError),
    ],
)
def test_misuse_is_an_error(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_the_largest_timeout_is_accepted() -> None:
    channel = Channel[int](maxsize=1)
    channel.send(1, timeout=threading.TIMEOUT_MAX)
    assert channel.receive(timeout=threading.TIMEOUT_MAX) == 1
