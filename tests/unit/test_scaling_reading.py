"""Every form in which thread counts and measurements may arrive, and every complaint about them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.scaling.errors import AmbiguousWorkError, ScalingError
from contention_lab.scaling.reading import (
    Table,
    is_literal,
    parse_time,
    read_literals,
    read_text,
)

POINTS = ((1.0, 492.0), (2.0, 526.0), (4.0, 640.0))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("492", 492.0),
        ("8:12", 492.0),
        ("0:59.5", 59.5),
        ("1:02:03", 3723.0),
        ("90:00", 5400.0),
        (" 1e-3 ", 0.001),
    ],
)
def test_times_are_seconds_or_clock_readings(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "8:", "8:60", "1:60:00", "1:2:3:4", "eight", ":12", "-1:30"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "threads,time\n1,8:12\n2,8:46\n4,10:40\n",
        "\ufeffThreads; Time\n1; 492\n2; 526\n4; 640",
        "time\tthreads\tcomment\n492\t1\ta\n526\t2\tb\n640\t4\tc\n",
        "# burn\n\nthreads,seconds\n1,492\n2,526\n# later\n4,640\n",
        '{"threads": [1, 2, 4], "time": ["8:12", 526, "10:40"]}',
        '[{"threads": 1, "time": 492}, {"threads": 2, "time": 526}, {"threads": 4, "time": 640}]',
        '{"kind": "time", "points": [[1, 492], [2, 526], [4, 640]]}',
    ],
)
def test_the_same_table_in_every_form(text: str) -> None:
    table = read_text(text, "data")

    assert table.points == POINTS
    assert table.kind == "time"


def test_points_on_the_command_line_are_times() -> None:
    assert read_literals(["1=8:12", "2=526", "4=10:40"]) == Table(POINTS, "time")


@pytest.mark.parametrize(
    ("word", "literal"),
    [("1=8:12", True), ("16=3", True), ("data.csv", False), ("-", False), ("a=b.csv", False)],
)
def test_points_and_file_names_are_told_apart(word: str, literal: bool) -> None:
    assert is_literal(word) is literal


def test_a_published_table_brings_its_meaning() -> None:
    text = json.dumps(
        {"unit": "ops/s", "kind": "throughput", "work": "per-thread", "points": [[9, 3], [18, 2]]}
    )

    table = read_text(text, "data").measured()

    assert (table.kind, table.work, table.unit) == ("throughput", "per-thread", "ops/s")


def test_what_is_told_goes_before_what_the_text_says() -> None:
    text = '{"kind": "time", "work": "per-thread", "points": [[1, 4], [2, 3]]}'

    table = read_text(text, "data").measured(kind="throughput", work="fixed")

    assert (table.kind, table.work) == ("throughput", "fixed")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "data: empty"),
        ("# nothing\n", "data: empty|data: only comments"),
        ("1,492\n2,526\n", "the first line must name the columns.*'1,492'"),
        ("threads,time,throughput\n1,2,3\n", "the first line must name the columns"),
        ("threads,time\n1,8:12\n2\n", "data line 3: 1 columns, the header has 2"),
        ("threads,time\n1,8:12\n2,8:4x\n", "data line 3: '8:4x' is no number"),
        ("threads,time\nx,8:12\n", "data line 2: 'x' is no thread count"),
        ("[1, 2", "data: not JSON"),
        ("[" * 100_000, "data: not JSON"),
        ("[1, 2]", "data point 1: expected \\[threads, value\\]"),
        ('{"a": 1}', "data: expected"),
        ('{"threads": [1, 2], "time": [1]}', "data: 2 thread counts and 1 values"),
        ('{"threads": 1, "time": 2}', "must be lists"),
        ('{"points": 3}', "'points' must be a list"),
        ('[{"threads": 1}]', 'data point 1: needs "threads" and'),
        ('[{"threads": 1, "time": 2}, {"threads": 2, "rate": 2}]', "data point 2: 'rate' among"),
        ('[{"threads": true, "time": 2}]', "data point 1: 'True' is no number"),
        ('{"points": [], "work": "all"}', "data: 'work' is 'all': give fixed or per-thread"),
    ],
)
def test_a_complaint_names_the_place(text: str, complaint: str) -> None:
    with pytest.raises(ScalingError, match=complaint) as caught:
        read_text(text, "data")

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("word", ["1", "=5", "1=", "1=x", "x=1"])
def test_a_mistyped_point_is_quoted(word: str) -> None:
    with pytest.raises(ScalingError, match=word):
        read_literals(["1=2", word])


def test_a_table_without_points_is_refused() -> None:
    with pytest.raises(ScalingError, match="no points"):
        read_text("threads,time\n", "data").measured()


def test_values_of_no_known_kind_are_not_guessed() -> None:
    with pytest.raises(AmbiguousWorkError, match="--kind time or --kind throughput"):
        read_text("[[1, 2], [2, 3]]", "data").measured()


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_table_or_one_line(text: str) -> None:
    outcome: object
    try:
        outcome = read_text(text, "data")
    except ScalingError as error:
        outcome = error

    assert isinstance(outcome, Table) or "\n" not in str(outcome)
