"""The ring of the recorder against a model: a queue that refuses when it is full."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from contention_lab.native import _core

HEADER = 8
Operation = tuple[str, int, bytes]

operations = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(1, 9), st.binary(max_size=100)),
        st.tuples(st.just("pop"), st.just(0), st.just(b"")),
    ),
    max_size=300,
)


def padded(payload: bytes) -> bytes:
    return payload + bytes(-len(payload) % 8)


@given(st.sampled_from([256, 512, 1024]), operations)
def test_ring_is_a_bounded_queue_that_never_loses_reorders_or_invents(
    capacity: int, steps: list[Operation]
) -> None:
    ring = _core.ring_new(capacity)
    model: deque[tuple[int, bytes]] = deque()
    for name, kind, payload in steps:
        if name == "push":
            used = sum(HEADER + len(item) for _, item in model)
            needed = HEADER + len(padded(payload))
            if _core.ring_push(ring, kind, payload):
                model.append((kind, padded(payload)))
                assert used + needed <= capacity
            else:
                # refused only for want of room: a record does not wrap, so the rest of the ring
                # (less than one record) may be lost to padding
                assert used + needed + needed > capacity
        else:
            got = _core.ring_pop(ring)
            expected = model.popleft() if model else None
            if expected is None:
                assert got is None
            else:
                assert got is not None
                assert got[0] == expected[0]
                # the filler of the last word is not defined
                assert len(got[1]) == len(expected[1])
                assert got[1].startswith(expected[1].rstrip(b"\0"))
    while model:
        got = _core.ring_pop(ring)
        expected = model.popleft()
        assert got is not None
        assert got[0] == expected[0]
    assert _core.ring_pop(ring) is None


@given(st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=40))
def test_ring_keeps_whole_records_over_many_turns(payloads: list[bytes]) -> None:
    ring = _core.ring_new(256)
    for turn in range(10):
        for payload in payloads:
            assert _core.ring_push(ring, turn + 1, payload)
            kind, data = _core.ring_pop(ring) or (0, b"")
            assert kind == turn + 1
            assert data[: len(payload)] == payload
