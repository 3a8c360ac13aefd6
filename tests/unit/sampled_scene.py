"""Samples made by hand: threads at lines of a small program, at moments 10 ms apart."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

from contention_lab.sampling.classes import ThreadState
from contention_lab.sampling.frame import SampledFrame
from contention_lab.sampling.sample import Sample, SampledThread
from contention_lab.sampling.sampled_trace import sampled_trace
from contention_lab.sampling.sources import Sources
from contention_lab.trace import Trace, parse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contention_lab.trace import TraceBuilder

STEP_NS = 10_000_000
SOURCE = dedent(
    '''
    import threading
    class Pool:
        def __init__(self):
            self._lock = threading.Lock()      # 5
        def take(self):
            with self._lock:                   # 7
                work()                         # 8
    def work():
        compute()                              # 10
    def spin(lock):
        while not lock.acquire(blocking=False):  # 12
            pass
    def get():
        return jobs.get()                      # 15
    '''
)  # fmt: skip

RUNS = ThreadState(on_cpu=True, has_gil=True)
SLEEPS = ThreadState(on_cpu=False, call="clock_nanosleep")
WAITS_GIL = ThreadState(on_cpu=False, call="futex", waits_for_gil=True)
ASLEEP = ThreadState(on_cpu=False, call="futex", waits_for_gil=False)


def at(function: str, line: int) -> SampledFrame:
    return SampledFrame(function, "/prog/app.py", line)


QUEUE = SampledFrame("Queue.get", "/usr/lib/python3.11/queue.py", 171)
TAKES = (at("Pool.take", 7), at("main", 1))
HOLDS = (at("work", 10), at("Pool.take", 8), at("main", 1))
OUTSIDE = (at("work", 10), at("main", 1))
SPINS = (at("spin", 12), at("main", 1))
GETS = (QUEUE, at("get", 15), at("main", 1))

Doings = "tuple[tuple[SampledFrame, ...], ThreadState, int]"


def scene(
    tmp_path: Path, moments: Sequence[Sequence[Any]], *, about: dict[str, Any] | None = None
) -> Trace:
    """Return a trace of moments: for each thread its stack, its state and the word it sleeps on.

    And where it is another than that of its stack, its own state.

    None: the thread is not there.
    """
    return parse(built(tmp_path, moments, about=about).bytes())


def built(
    tmp_path: Path, moments: Sequence[Sequence[Any]], *, about: dict[str, Any] | None = None
) -> TraceBuilder:
    """Return what writes such a trace."""
    folder = tmp_path / "prog"
    folder.mkdir(exist_ok=True)
    (folder / "app.py").write_text(SOURCE)
    samples = [
        Sample(
            *((number + 1) * STEP_NS, STEP_NS, thread, *doing[:2]),
            word=doing[2],
            own=doing[3] if len(doing) > 3 else None,
        )
        for number, moment in enumerate(moments)
        for thread, doing in enumerate(moment)
        if doing is not None
    ]
    count = max(map(len, moments))
    return sampled_trace(
        samples,
        [SampledThread(number=100 + i, name=f"T{i}", is_main=i == 0) for i in range(count)],
        Sources(root=tmp_path),
        about={"source": "py-spy", "interval_ns": STEP_NS, **(about or {})},
        meta={"machine": {"cores": 2}},
        duration_ns=(len(moments) + 1) * STEP_NS,
    )
