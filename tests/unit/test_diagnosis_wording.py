"""Figures and places as sentences have them."""

from __future__ import annotations

import pytest

from contention_lab.diagnosis import AccusedLock, Party
from contention_lab.diagnosis.figures import lock_figures
from contention_lab.diagnosis.wording import (
    LONGEST,
    acting,
    brief,
    counted,
    duration,
    enumeration,
    lock_and_origin,
    name,
    names,
    number,
    percent,
    place,
    seconds,
    times,
)
from contention_lab.trace import Frame

WORKER = Frame("run.<locals>.worker", "C:\\src\\app.py", 12, 10)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (754.2, "754 s"),
        (6.14, "6.1 s"),
        (0.99996, "1.0 s"),
        (0.0312, "31 ms"),
        (0.00099996, "1.0 ms"),
        (2.5e-6, "2.5 µs"),
        (480e-9, "480 ns"),
        (0.0, "0 s"),
    ],
)
def test_durations_choose_their_unit(value: float, text: str) -> None:
    assert duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.28, "0.28"), (0.1, "0.10"), (6.149, "6.1"), (21.8, "22"), (754.2, "754"), (0, "0")],
)
def test_numbers_have_two_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_shares_are_percent() -> None:
    assert [percent(share) for share in (0.934, 0.0951, 0.004, 0.0)] == [
        "93 %",
        "10 %",
        "0.40 %",
        "0 %",
    ]


def test_batch_times_stay_in_seconds_as_long_as_that_reads_well() -> None:
    assert [seconds(value) for value in (6.1, 0.28, 0.031)] == ["6.1 s", "0.28 s", "31 ms"]


def test_changes_are_told_as_factors() -> None:
    assert [times(ratio, same=0.05) for ratio in (21.79, 1.07, 1.03, 0.97, 0.5)] == [
        "21.8 times as long",
        "1.07 times as long",
        "the same",
        "the same",
        "2.0 times as fast",
    ]


def test_places_and_locks_are_named_as_in_the_source() -> None:
    assert place(WORKER) == "`worker` (app.py:12)"
    assert place(None) == "code outside the program"
    assert name(WORKER) == "worker"
    assert lock_and_origin(AccusedLock("cache", "Mutex", WORKER, 1)) == (
        "`cache` (Mutex, made at app.py:12)"
    )
    assert lock_and_origin(AccusedLock("cache", "", None, 3)) == "`cache` (lock, 3 of them)"


def test_lists_are_written_out() -> None:
    assert [enumeration(list(text)) for text in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("primes.<locals>.<listcomp>.<genexpr>", "primes"),
        ("Feed.start.<locals>.<listcomp>", "Feed.start"),
        ("main.<locals>.work.<locals>.<genexpr>", "work"),
        ("<listcomp>", "<module>"),
        ("<listcomp>.<genexpr>", "<module>"),
        ("main.<locals>.<lambda>", "<lambda>"),
    ],
)
def test_a_comprehension_has_the_name_of_its_function(function: str, text: str) -> None:
    assert name(Frame(function, "/app/program.py", 3, 3)) == text


def test_a_number_of_things_is_in_the_plural_unless_it_is_one() -> None:
    assert (counted(1, "producer"), counted(3, "producer")) == ("1 producer", "3 producers")


def test_parties_are_named_once() -> None:
    party = Party(WORKER, (), 1.0, 1.0)

    assert names([party, party, Party(None, (), 1.0, 1.0)]) == "`worker`"
    assert names([Party(None, (), 1.0, 1.0)]) == "code outside the program"


def test_one_function_keeps_and_two_keep() -> None:
    party = Party(WORKER, (), 1.0, 1.0)
    other = Party(Frame("other", "/app/program.py", 9, 9), (), 1.0, 1.0)

    assert acting([party, party], "keep") == "`worker` keeps"
    assert acting([party, other], "keep") == "`worker` and `other` keep"
    assert acting([], "keep") == "code outside the program keeps"


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"contended": 60, "acquires": 2247}, "contended 60 of 2,247 acquires"),
        ({"contended": 3, "acquires": 2, "timed_out": 2}, "contended 3 of 4 attempts"),
        ({"contended": 2, "acquires": 1}, "contended 2 of 2 attempts"),
    ],
)
def test_no_more_attempts_wait_than_there_are(figures: dict[str, int], said: str) -> None:
    assert said in lock_figures(figures)


def test_of_a_word_in_the_kernel_uncontended_acquires_are_not_seen() -> None:
    figures = {"contended": 293, "acquires": 293}
    said = "contended 293 (uncontended acquires of futex locks are not seen)"

    assert said in lock_figures(figures, {"type": "futex"})
    assert "contended 293 of 293 acquires" in lock_figures(figures, {"type": "pthread_mutex"})


def test_a_long_sentence_loses_its_last_clauses_and_nothing_within_brackets() -> None:
    lock = "`Store.lock` (threading.Lock, made at store.py:31, 3 of them)"
    sentence = f"{'7 of 8 threads wait in `get` for ' + lock}: {'`put` holds it, ' * 12}and {lock}."
    told = brief(sentence)
    assert LONGEST / 3 < len(told) <= LONGEST
    assert told.startswith(f"7 of 8 threads wait in `get` for {lock}: `put` holds it")
    assert told.endswith("holds it.")
    assert told.count("(") == told.count(")")


def test_a_short_sentence_stays_as_it_is() -> None:
    assert brief("Nobody waits, so far.") == "Nobody waits, so far."


def test_a_sentence_of_one_endless_name_is_cut() -> None:
    told = brief(f"`{'a' * 400}` waits.")
    assert len(told) == LONGEST
    assert told.endswith("…")
