"""Timelines for Perfetto and the Firefox profiler: what lies where, and that it can be read."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
import numpy as np
from export_case import case
from hypothesis import given

from contention_lab.analysis.waiters_over_time import waiters_over_time
from contention_lab.export.hand_over_pairs import hand_over_pairs
from contention_lab.export.lanes import lanes
from contention_lab.export.registry import FORMATS
from contention_lab.trace import Trace, TraceBuilder, parse


def written(name: str, trace: Trace | None = None) -> Any:
    sink = io.BytesIO()
    FORMATS[name].write(trace or case(), sink, None)
    return json.loads(sink.getvalue())


def slices(document: Any) -> dict[str, Any]:
    return {event["name"]: event for event in document["traceEvents"] if event["ph"] == "X"}


def test_waits_and_holds_lie_where_they_were() -> None:
    found = slices(written("perfetto"))

    wait, recv = found["wait: catalog"], found["blocked: recv"]
    assert (wait["pid"], wait["tid"], wait["ts"], wait["dur"]) == (77, 101, 10.0, 90.0)
    assert wait["args"] == {
        "at": "Catalog.get (srv/catalog.py:20)",
        "holder": "writer",
        "holder at": "Catalog.refresh (srv/catalog.py:40)",
    }
    assert (recv["ts"], recv["dur"]) == (20.0, 60.0)
    assert (found["wait: GIL"]["ts"], found["wait: GIL"]["dur"]) == (400.0, 5.0)


def test_every_lane_has_a_name_and_waits_have_the_thread_of_the_system() -> None:
    document = written("perfetto")
    names = {
        event["tid"]: event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "thread_name"
    }

    assert {event["tid"] for event in slices(document).values()} == set(names)
    assert (names[101], names[102]) == ("reader", "writer")
    assert sorted(names.values()) == ["holds: reader", "holds: writer", "reader", "writer"]


def test_an_arrow_leads_from_the_release_to_the_wait_it_ended() -> None:
    document = written("perfetto")
    ends: dict[int, dict[str, Any]] = defaultdict(dict)
    for event in document["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
    spans = [event for event in document["traceEvents"] if event["ph"] == "X"]

    arrows = {
        tuple(
            next(
                span["name"]
                for span in spans
                if span["tid"] == end["tid"]
                and span["ts"] <= end["ts"] < span["ts"] + span["dur"]
                and span["name"].startswith(("wait", "hold"))
            )
            for end in (pair["s"], pair["f"])
        )
        for pair in ends.values()
    }

    assert ("hold: catalog", "wait: catalog") in arrows
    assert len(arrows) == len(ends) == 2


def test_counters_count_the_waiters() -> None:
    points = [
        (event["ts"], event["args"]["threads"])
        for event in written("perfetto")["traceEvents"]
        if event["ph"] == "C" and event["name"] == "waiting: catalog"
    ]

    assert points == [(10.0, 1), (100.0, 0)]


def test_spans_of_one_lane_nest() -> None:
    builder = TraceBuilder()
    locks = [builder.add_lock(name=str(i)) for i in range(3)]
    thread = builder.add_thread("worker")
    for lock, start, end in ((0, 0, 100), (1, 50, 150), (2, 60, 90)):
        builder.add_hold(locks[lock], thread, start, end)

    found = slices(written("perfetto", parse(builder.bytes())))

    assert found["hold: 0"]["tid"] == found["hold: 2"]["tid"] != found["hold: 1"]["tid"]


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 60), st.integers(0, 30)),
        min_size=1,
        max_size=60,
    )
)
def test_lanes_hold_what_nests_and_nothing_else(spans: list[tuple[int, int, int]]) -> None:
    thread, start, length = np.array(spans, dtype=np.int64).T

    order, lane = lanes(thread, start, start + length)

    assert sorted(order.tolist()) == list(range(len(spans)))
    open_ends: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, row in zip(order.tolist(), lane.tolist(), strict=True):
        enclosing = open_ends[int(thread[at]), row]
        begin, end = int(start[at]), int(start[at] + length[at])
        while enclosing and enclosing[-1] <= begin:
            enclosing.pop()
        assert not enclosing or end <= enclosing[-1]
        enclosing.append(end)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=40),
    st.integers(2, 30),
)
def test_no_crowd_is_lost_from_a_counter(waits: list[tuple[int, int]], most: int) -> None:
    start, length = np.array(waits, dtype=np.int64).T
    crowd = max(sum(begin <= now < begin + lasted for begin, lasted in waits) for now in range(80))

    times, waiting = waiters_over_time(start, start + length, most)

    assert len(times) <= most
    assert (np.diff(times) > 0).all()
    assert waiting.max() == crowd
    assert waiting[-1] == 0


def test_a_wait_without_a_release_has_no_arrow() -> None:
    builder = TraceBuilder()
    lock, other = builder.add_lock(), builder.add_lock()
    thread, holder = builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, holder, 0, 10)
    builder.add_hold(other, holder, 0, 40)
    builder.add_wait(lock, thread, 20, 50)

    assert len(hand_over_pairs(parse(builder.bytes()), 10).wait) == 0


def test_a_profile_for_firefox_refers_to_what_it_has() -> None:
    document = written("firefox")

    for thread in document["threads"]:
        sizes = {
            name: table["length"]
            for name, table in thread.items()
            if isinstance(table, dict) and "length" in table
        }
        for name in sizes:
            for column in thread[name].values():
                assert not isinstance(column, list) or len(column) == sizes[name]
        for name, column, other in (
            ("samples", "stack", "stackTable"),
            ("stackTable", "frame", "frameTable"),
            ("stackTable", "prefix", "stackTable"),
            ("frameTable", "func", "funcTable"),
        ):
            known = [value for value in thread[name][column] if value is not None]
            assert all(0 <= value < sizes[other] for value in known)
        texts = [*thread["funcTable"]["name"], *thread["markers"]["name"]]
        assert all(0 <= text < len(thread["stringArray"]) for text in texts)
        assert sorted(thread["samples"]["time"]) == thread["samples"]["time"]


def test_a_sample_for_firefox_weighs_what_was_waited_and_ends_in_the_lock() -> None:
    (reader,) = (one for one in written("firefox")["threads"] if one["name"] == "reader")

    def called(stack: int | None) -> list[str]:
        if stack is None:
            return []
        table = reader["stackTable"]
        function = reader["frameTable"]["func"][table["frame"][stack]]
        text = reader["stringArray"][reader["funcTable"]["name"][function]]
        return [*called(table["prefix"][stack]), text]

    assert reader["samples"]["weight"] == [0.09]
    assert called(reader["samples"]["stack"][0]) == ["main", "Catalog.get", "catalog"]
    (wait,) = (one for one in reader["markers"]["data"] if one["type"] == "Wait")
    assert wait["holder at"] == "Catalog.refresh (srv/catalog.py:40)"
