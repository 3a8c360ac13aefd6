"""One traced run as the page shows it: flame trees, lock table, who blocks whom, thread time.

A page shows one of its runs at a time (a variant at a thread count, or a trace file). Everything
that needs events is computed here, once per run, and the events are let go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.analysis import blame, block_matrix, flame, lock_table, thread_time, working
from contention_lab.report.block_table import BlockTable, block_table
from contention_lab.report.call_tree import CallTree, call_tree
from contention_lab.report.lock_lines import LockLines, lock_lines
from contention_lab.report.recorder_facts import RecorderFacts, recorder_facts
from contention_lab.report.thread_bars import thread_bars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.analysis import FlameNode
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.report.thread_time_plot import Bar
    from contention_lab.trace import Trace


@dataclass(frozen=True, slots=True)
class FlameKind:
    """One of the four flame graphs."""

    key: View
    """The view's name in `analysis.weighted_stacks`."""
    title: str
    subtitle: str
    empty: str
    """What to say when there is nothing to draw."""
    how_to_read: str


FLAME_KINDS: Final = (
    FlameKind(
        "victim",
        "Waiting: who waits",
        "time spent waiting for locks, by the code that waited",
        "Nobody waited for a lock in this run.",
        "Width is time that threads spent waiting for a lock (spinning and parked; not the wait "
        "for the GIL afterwards). The outermost caller is at the top; each row is called by the "
        "one above; the dark box at the end is the lock. Wide boxes near the end are the places "
        "that suffer. They are not the places to blame: see the next graph.",
    ),
    FlameKind(
        "culprit",
        "Waiting: who makes them wait",
        "the same waiting, by what the thread that held the lock was executing",
        "Nobody was made to wait in this run.",
        "The same time as in the first graph, but drawn under the code that held the lock while "
        "others waited. Every wait is divided over the holds it overlaps, to the nanosecond. The "
        "first row is the lock, then the holder's calls. A wide box is work inside the critical "
        "section: move it out or make it shorter, and its width is what others gain. “hand-off” "
        "is waiting that no recorded hold covers: the lock was free or changing hands.",
    ),
    FlameKind(
        "spin",
        "Spinning",
        "time spent asking for a lock again and again, by the code that asked",
        "Nobody spun in this run.",
        "The part of the waiting that was spent in a spin loop. A spinner uses a core that the "
        "holder may need. With more threads than cores, time here can be the reason why the "
        "holds themselves get longer.",
    ),
    FlameKind(
        "hold",
        "Holding",
        "time locks were held while somebody waited, by the code that held them",
        "No hold blocked anybody in this run.",
        "Width is the time a lock was held, for the holds that are recorded one by one (at level "
        "profile: those that blocked somebody). Compare with the second graph: there a hold "
        "counts once for every thread that waited, here it counts once.",
    ),
)


NOT_ONE_BY_ONE: Final = (
    "Nothing of this was recorded one by one in this run (level counters, or records were "
    "dropped). The table of locks has the totals."
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
    bars: tuple[Bar, ...]
    facts: RecorderFacts

    @property
    def waiting_s(self) -> float:
        """All waiting for locks in the run, thread seconds."""
        return self.locks.wait_s

    def empty(self, kind: FlameKind) -> str:
        """What to say where a flame graph of this run has nothing to draw."""
        counted = {
            "victim": self.locks.wait_s,
            "culprit": self.locks.wait_s,
            "spin": self.locks.spin_s,
            "hold": float(self.facts.level == "counters"),
        }
        return NOT_ONE_BY_ONE if counted[kind.key] else kind.empty


def point_view(key: str, label: str, group: str, threads: int | None, trace: Trace) -> PointView:
    """Compute everything the page shows of a trace.

    Bars are of the threads that work: one that only waits for the others, as a main thread does in
    `join`, would make every share of a sweep look smaller.
    """
    divided = blame(trace)
    flames = {kind.key: flame(trace, kind.key, divided) for kind in FLAME_KINDS}
    return PointView(
        key,
        label,
        group,
        threads,
        flames,
        {view: call_tree(root, view) for view, root in flames.items()},
        lock_lines(lock_table(trace)),
        block_table(block_matrix(trace, divided)),
        thread_bars(working(thread_time(trace))),
        recorder_facts(trace),
    )
