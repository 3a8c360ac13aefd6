"""Limits of a test, against traces made by hand."""

from __future__ import annotations

import pytest

from contention_lab.testing.limits import LimitError, Limits, seconds, waited_share
from contention_lab.trace import Trace, TraceBuilder, parse

MS = 1_000_000


def trace() -> Trace:
    """Return two threads of 100 ms, of which one waits 40 ms for the other's hold."""
    builder = TraceBuilder(duration_ns=100 * MS)
    lock = builder.add_lock("threading.Lock", name="Catalog._lock")
    reader = builder.add_thread("reader", end_ns=100 * MS, cpu_ns=60 * MS)
    writer = builder.add_thread("writer", end_ns=100 * MS, cpu_ns=90 * MS)
    get = builder.add_stack(builder.add_frame("Catalog.get", "/srv/catalog.py", 20))
    refresh = builder.add_stack(builder.add_frame("Catalog.refresh", "/srv/catalog.py", 40))
    builder.add_hold(lock, writer, 0, 40 * MS, stack=refresh, waiters=1)
    builder.add_wait(lock, reader, 0, 40 * MS, stack=get, holder=writer, park_ns=40 * MS)
    return parse(builder.bytes())


def test_the_share_is_of_the_time_of_both_threads() -> None:
    assert waited_share(trace()) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("arguments", "violated"),
    [
        ({"max_wait": "39ms"}, True),
        ({"max_wait": "41ms"}, False),
        ({"max_total_wait": 0.039}, True),
        ({"max_total_wait": 0.041}, False),
        ({"max_share": 0.19}, True),
        ({"max_share": 0.21}, False),
        ({"max_wait": "1ms", "lock": "catalog"}, True),
        ({"max_wait": "1ms", "lock": "other"}, False),
        ({"no_lock_order_risk": True}, False),
    ],
)
def test_limits_are_kept_or_not(arguments: dict[str, object], violated: bool) -> None:
    found = list(Limits.of(arguments).violations(trace()))

    assert bool(found) is violated
    for sentence in found:
        assert "`Catalog.get` (catalog.py:20) waited 40 ms for `Catalog._lock`" in sentence
        assert "while `Catalog.refresh` (catalog.py:40) held it" in sentence


@pytest.mark.parametrize(
    ("value", "expected"), [("5ms", 0.005), ("2 s", 2.0), ("7us", 7e-6), (0.5, 0.5), (0, 0.0)]
)
def test_durations(value: object, expected: float) -> None:
    assert seconds(value, "max_wait") == pytest.approx(expected)


@pytest.mark.parametrize("value", ["5", "ms", -1, True, None, float("nan")])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(LimitError, match="give seconds, or a text such as '5ms'"):
        seconds(value, "max_wait")
