"""From a design and the times of another one's calls to a batch: the steps of every item.

Python code is spread evenly over kernels and calls, since nobody recorded where it was; a call that
only changes tables is Python code altogether. What a design adds of its own is as long as something
that was recorded or calibrated: looking up a graph, or taking a node out of the tables, as putting
one in; sending a kernel or a message, as the host's hand-over of an empty job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.batch import Batch, LockKind
from contention_lab.simulate.design.design import CALLS, GRAPHS, NOTHING, TABLES, THREADS
from contention_lab.simulate.history import History, history_of
from contention_lab.simulate.packing import OPS
from contention_lab.simulate.program import Step, acquire, call, compute, post, release
from contention_lab.simulate.time_use import TimeUse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.simulate.design.design import Call, Design
    from contention_lab.simulate.design.sample import Sample

LOCK: Final = 1
LOCATOR: Final = 2
SERVER: Final = 3
"""Ids of the lock, the lock under which graphs are looked up, and the channel of the server."""
STREAMS: Final = 4
"""Id of the first stream."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """Python code, in ns, that hands a job to another thread, and that takes it and answers."""

    send_ns: float
    receive_ns: float


def batch_of_design(
    design: Design, sample: Sample, threads: int, cores: int, costs: HandOver
) -> Batch:
    """Return the batch that a design makes of recorded items.

    Parameters
    ----------
    design
        What threads share.
    sample
        The items, each done by one thread.
    threads, cores
        How many threads do them, and where; a design with streams has no more than either.
    costs
        Of handing jobs over.
    """
    streams = min(threads, cores) if design.queues else 0
    mean_ns = _short_ns(design, sample)
    crews: list[list[Step]] = [[] for _ in range(threads if streams else 1)]
    edges: list[list[int]] = [[0] for _ in crews]
    for item in range(sample.items):
        own = item % len(crews)
        builder = _Item(design, sample, item, mean_ns, costs, STREAMS + own % max(1, streams))
        crews[own].extend(builder.steps())
        edges[own].append(len(crews[own]))
    members = [_member(one, at) for one, at in zip(crews, edges, strict=True) if one]
    channels = [*range(STREAMS, STREAMS + streams), *([SERVER] if design.has_thread else [])]
    lock = design.lock or LockKind("parking")
    kinds = {LOCK: lock, LOCATOR: lock, **dict.fromkeys(channels, LockKind("channel"))}
    return Batch(
        crew=tuple(members),
        others=(),
        kinds=kinds,
        names={LOCK: "the lock", LOCATOR: "the locator", **dict.fromkeys(channels, "a server")},
        gil=True,
        scale=1.0,
        threads=len(members) if streams else threads,
        each_its_own=bool(streams),
        servers=tuple((id_, False) for id_ in channels),
        serving_ns=costs.receive_ns if channels else 0.0,
    )


def _short_ns(design: Design, sample: Sample) -> float:
    """Return what a call takes that only puts a node into the tables."""
    short = np.array([not call.is_long for call in design.calls])
    return float(np.median(sample.within_ns[:, short])) if short.any() else 0.0


def _member(steps: list[Step], edges: list[int]) -> History:
    """Return a history that can be cut between items only."""
    ops = np.array(steps, dtype=OPS)
    whole = history_of(0, ops, np.full(len(ops), -1, np.int64), TimeUse(1.0, 0.0, 0.0))
    cuts = np.array(edges, np.int64)
    spent = whole.spent_ns[np.searchsorted(whole.cuts, cuts)]
    return History(0, ops, whole.holds, cuts, spent, whole.use)


class _Item:
    """The steps of one item of work."""

    def __init__(
        self,
        design: Design,
        sample: Sample,
        item: int,
        mean_ns: float,
        costs: HandOver,
        stream: int,
    ) -> None:
        self._design, self._costs, self._stream = design, costs, stream
        self._before, self._within = sample.before_ns[item], sample.within_ns[item]
        self._mean_ns = mean_ns
        calls = design.calls
        total = float(self._before.sum() + self._within.sum())
        short = sum(
            float(ns) for ns, one in zip(self._within, calls, strict=True) if not one.is_long
        )
        units = len(calls) + sum(one.kernels_before + one.kernels_within for one in calls)
        self._unit_ns = max(0.0, sample.gil * total - short) / max(1, units)

    def steps(self) -> Iterator[Step]:
        """Yield them."""
        calls = zip(self._design.calls, self._before, self._within, strict=True)
        for one, before_ns, within_ns in calls:
            yield from self._work(float(before_ns), one.kernels_before, 1)
            if self._design.has_thread:
                yield from self._asked(one, float(within_ns))
            elif self._design.apart == THREADS or self._design.covers == NOTHING:
                yield from self._body(one, float(within_ns))
            elif self._design.apart == GRAPHS:
                yield from self._tables(LOCATOR, self._mean_ns)
                yield from self._body(one, float(within_ns))
            elif self._design.covers == TABLES and one.is_long:
                yield from self._narrow(one, float(within_ns))
            else:
                assert self._design.covers in (CALLS, TABLES)
                yield acquire(LOCK)
                yield from self._body(one, float(within_ns))
                yield release(LOCK)
        if self._design.queues:
            yield call(self._stream, 0.0)

    def _body(self, one: Call, ns: float) -> Iterator[Step]:
        """Yield what is done in a call."""
        if one.is_long:
            yield from self._work(ns, one.kernels_within, 1)
        else:
            yield compute(ns, gil=True)

    def _narrow(self, one: Call, ns: float) -> Iterator[Step]:
        """Yield a long call whose kernels run between two short holds."""
        tables_ns = min(one.nodes * self._mean_ns, ns / 4)
        yield from self._tables(LOCK, tables_ns)
        yield from self._work(ns - 2 * tables_ns, one.kernels_within, 1)
        yield from self._tables(LOCK, tables_ns)

    def _tables(self, lock: int, ns: float) -> Iterator[Step]:
        yield acquire(lock)
        yield compute(ns, gil=True)
        yield release(lock)

    def _asked(self, one: Call, ns: float) -> Iterator[Step]:
        """Yield a message to the server, or a request."""
        yield compute(self._costs.send_ns, gil=True)
        yield call(SERVER, ns) if one.is_long else post(SERVER, ns)

    def _work(self, ns: float, kernels: int, calls: int) -> Iterator[Step]:
        """Yield Python code and kernels in turn."""
        python = min(ns, self._unit_ns * (kernels + calls))
        if not kernels:
            yield compute(ns, gil=True)
            return
        kernel_ns, python_ns = (ns - python) / kernels, python / kernels
        for _ in range(kernels):
            if self._design.queues:
                yield compute(python_ns + self._costs.send_ns, gil=True)
                yield post(self._stream, kernel_ns)
            else:
                yield compute(python_ns, gil=True)
                yield compute(kernel_ns)
