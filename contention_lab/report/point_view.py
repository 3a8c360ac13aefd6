"""One traced run as the page shows it: flame trees, lock table, who blocks whom, thread time.

A page shows one of its runs at a time (a variant at a thread count, or a trace file). Everything
that needs events is computed here, once per run, and the events are let go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.analysis import blame, block_matrix, flame, lock_table, thread_time, working
from contention_lab.analysis.lock_graph import lock_graph
from contention_lab.analysis.native_program import completed
from contention_lab.analysis.thread_matrix import thread_matrix
from contention_lab.report.block_table import BlockTable, block_table, thread_table
from contention_lab.report.call_tree import CallTree, call_tree
from contention_lab.report.flame_kinds import ALL_KINDS, FlameKind
from contention_lab.report.gil_view import GilView, gil_view
from contention_lab.report.lock_lines import LockLines, lock_lines
from contention_lab.report.lock_order_view import LockOrderView, lock_order_view
from contention_lab.report.native_lines import NativeLines, native_lines
from contention_lab.report.recorder_facts import RecorderFacts, recorder_facts
from contention_lab.report.sampled_lines import (
    sampled_bars,
    sampled_lock_lines,
    samples_said,
    sources_read_ns,
)
from contention_lab.report.source_sites import sites_of
from contention_lab.report.thread_bars import thread_bars
from contention_lab.report.timeline import Timeline, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.analysis import FlameNode
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.report.thread_time_plot import Bar
    from contention_lab.trace import Frame, Trace


MOST_STACKS: Final = 20_000
"""Of a flame graph: so many take a second or two, and make more frames than a page has room for."""
NOT_ONE_BY_ONE: Final = (
    "Nothing of this was recorded one by one in this run (level counters, or records were "
    "dropped). The table of locks has the totals."
)


NO_SAMPLE: Final = "No sample shows any of this."
NOT_TOGETHER: Final = (
    "Who waited is in the samples, but not at which moment with whom, so no waits are made of "
    "them. The table of locks says how much it was."
)


@dataclass(frozen=True, slots=True)
class PointView:
    """What the page shows of one traced run."""

    key: str
    """Unique on the page; letters, digits and dashes only."""
    label: str
    group: str
    """Runs of one variant are listed together."""
    threads: int | None
    """Threads the run was asked for, where it is a point of a sweep."""
    flames: Mapping[View, FlameNode]
    trees: Mapping[View, CallTree]
    locks: LockLines
    blocks: BlockTable
    thread_blocks: BlockTable
    order: LockOrderView
    bars: tuple[Bar, ...]
    facts: RecorderFacts
    gil: GilView | None
    """None on a build without one, or where nothing saw it."""
    native: NativeLines
    timeline: Timeline
    thread_names: Mapping[int, str]
    sites: tuple[Frame, ...]
    """Whose source is worth showing."""
    samples: str
    """How many samples it is made of, as text; empty if it was recorded."""
    recorded_ns: int
    """When the program had read its sources, Unix time."""

    @property
    def waiting_s(self) -> float:
        """All waiting for locks in the run, thread seconds."""
        return self.locks.wait_s

    def empty(self, kind: FlameKind) -> str:
        """What to say where a flame graph of this run has nothing to draw."""
        counted = {
            "victim": self.locks.wait_s,
            "culprit": self.locks.wait_s,
            "pair": self.locks.wait_s,
            "spin": self.locks.spin_s,
            "hold": float(self.facts.level == "counters"),
        }
        if self.samples:
            return NOT_TOGETHER if kind.key in counted and self.locks.rows else NO_SAMPLE
        return NOT_ONE_BY_ONE if counted.get(kind.key) else kind.empty


def point_view(key: str, label: str, group: str, threads: int | None, trace: Trace) -> PointView:
    """Compute everything the page shows of a trace.

    Bars are of the threads that work: one that only waits for the others, as a main thread does in
    `join`, would make every share of a sweep look smaller.
    """
    trace = completed(trace)
    divided = blame(trace)
    flames = {
        kind.key: flame(trace, kind.key, divided, by_thread=True, most=MOST_STACKS)
        for kind in ALL_KINDS
    }
    matrix, graph = block_matrix(trace, divided), lock_graph(trace)
    locks = sampled_lock_lines(trace) if trace.is_sampled else lock_lines(lock_table(trace))
    return PointView(
        key,
        label,
        group,
        threads,
        flames,
        {view: call_tree(root, view) for view, root in flames.items()},
        locks,
        block_table(matrix),
        thread_table(thread_matrix(trace, divided)),
        lock_order_view(trace, graph),
        sampled_bars(trace) if trace.is_sampled else thread_bars(working(thread_time(trace))),
        recorder_facts(trace),
        gil_view(trace),
        native_lines(trace),
        timeline(trace, divided),
        {number: thread.label for number, thread in trace.threads.items()},
        sites_of(trace, matrix, locks, graph, flames.values()),
        samples_said(trace),
        sources_read_ns(trace),
    )
