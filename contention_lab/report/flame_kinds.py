"""The flame graphs of a page: what their width is, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contention_lab.analysis import FlameNode
    from contention_lab.analysis.weighted_stacks import View


@dataclass(frozen=True, slots=True)
class FlameKind:
    """One of the flame graphs."""

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
        "pair",
        "Both, back to back",
        "the same waiting, by who waited, then the lock, then what its holder was executing",
        "Nobody was made to wait in this run.",
        "The first two graphs joined at the lock. Down to the dark box, the calls of the thread "
        "that waited; below it, the code of the thread that held the lock, its innermost function "
        "first, then that one's callers. Read one column from the top to the bottom: this code "
        "waited for this lock because of that code.",
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

GIL_KINDS: Final = (
    FlameKind(
        "gil",
        "GIL: who waits",
        "time spent waiting for the GIL, by the code that waited",
        "Nobody waited for the GIL in this run, or not every wait was seen.",
        "Width is time that threads spent waiting for the GIL, wherever they needed it back: after "
        "a call that had let it go, or because they had been made to give it up. It is no waiting "
        "for a lock of the program, and none of it is in the other graphs.",
    ),
    FlameKind(
        "gil-holder",
        "GIL: who has it",
        "the same waiting, by the code that gave the GIL up after having it meanwhile",
        "Nobody waited for the GIL in this run, or not every wait was seen.",
        "The same time as in the graph before, divided over the threads that had the GIL. A wide "
        "box is Python code that keeps others from running: move it to another process, or into "
        "native code that lets the GIL go. “hand-over” is waiting during which no recorded hold "
        "lasted.",
    ),
)

ALL_KINDS: Final = (*FLAME_KINDS, *GIL_KINDS)


def shown_kinds(flames: Iterable[Mapping[View, FlameNode]]) -> tuple[FlameKind, ...]:
    """Return the graphs of a page with these trees: those of the GIL only if one has any."""
    seen = any(flames_of[kind.key].total_ns for flames_of in flames for kind in GIL_KINDS)
    return ALL_KINDS if seen else FLAME_KINDS
