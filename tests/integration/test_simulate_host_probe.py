"""The measuring extension on a real host, however busy: it counts right and comes back."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from contention_lab.simulate.host_probe import KINDS, LIMIT_NS, probe_here

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be measured")

CPUS = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else [0]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_every_thread_does_its_operations_or_gives_up(kind: str, threads: int) -> None:
    cpus = [CPUS[i % len(CPUS)] for i in range(threads)]

    found = probe_here().contend(KINDS.index(kind), cpus, 20.0, 100.0, 300, 50_000_000)

    assert len(found) == threads
    for done, spent_ns in found:
        assert 0 < done <= 300
        assert spent_ns > 0
        assert done == 300 or spent_ns >= 50_000_000


def test_a_wake_up_is_timed_on_both_sides() -> None:
    latencies, calls = probe_here().wakeups(CPUS[0], CPUS[-1], 5, LIMIT_NS)

    assert len(latencies) == len(calls) == 5
    assert all(value > 0 for value in (*latencies, *calls))


def test_sleeping_and_waking_in_turn_is_timed() -> None:
    assert probe_here().handover(CPUS[0], CPUS[0], 50, LIMIT_NS) > 0


def test_slices_are_those_of_two_threads_on_one_core() -> None:
    assert all(ns > 0 for ns in probe_here().slices(CPUS[0], CPUS[0], 100, 20_000_000))


def test_a_call_that_does_not_sleep_is_timed() -> None:
    assert probe_here().refused_sleep(100) > 0


@pytest.mark.parametrize(
    ("kind", "cpus", "hold"), [(99, [0], 1.0), (-1, [0], 1.0), (0, [], 1.0), (0, [0], -1.0)]
)
def test_what_cannot_be_measured_is_refused(kind: int, cpus: list[int], hold: float) -> None:
    with pytest.raises(ValueError, match=r"out of range|can be measured"):
        probe_here().contend(kind, cpus, hold, 0.0, 10, LIMIT_NS)


def test_a_cpu_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is the point
        probe_here().contend(0, [1000], 1.0, 1.0, 10, LIMIT_NS)

    assert caught.value.errno == errno.EINVAL
