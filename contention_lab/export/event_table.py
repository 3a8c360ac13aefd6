"""Every recorded wait and hold as one table of plain columns: what CSV and Parquet are made of.

Texts are columns of numbers with a list of the texts they stand for, since a million events name
few locks, threads and places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import coordination_waits, hold_spans, lock_waits
from contention_lab.analysis.sites import user_frame
from contention_lab.report.visible_text import name, visible
from contention_lab.trace import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from contention_lab.trace import Frame, Trace

    Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of texts.

    Attributes
    ----------
    codes
        Positions in `texts`, one for each event.
    texts
        The distinct texts; the empty one means "none".
    """

    codes: Integers
    texts: tuple[str, ...]


def event_table(trace: Trace) -> dict[str, TextColumn | Integers]:
    """Return the columns, by name, in their order; events by their start.

    `event` is `wait` (somebody held the lock), `coordination` (nobody has to let go: an event, an
    item, a thread) or `hold`. Times are nanoseconds since the start of the recording; `end_ns` is
    when the lock was ours, and `gil_ns` the time until the GIL was, too. `site` is the innermost
    frame of user code that waits or, of a hold, that acquired; `holder` and `holder_site` are those
    that were there when a wait began. What does not apply is 0 or empty.
    """
    contended, others, held = lock_waits(trace), coordination_waits(trace), hold_spans(trace)
    start = np.concatenate([contended.start_ns, others.start_ns, held.start_ns])
    order = np.argsort(start, kind="stable")
    waits, holds = trace.waits, trace.holds
    of_waits = np.concatenate([contended.index, others.index])

    def joined(wait_field: str | None, hold_field: str | None) -> Integers:
        first = (
            waits[wait_field][of_waits] if wait_field else np.zeros(len(of_waits), dtype=np.uint64)
        )
        second = holds[hold_field] if hold_field else np.zeros(len(holds), dtype=first.dtype)
        both: Integers = np.concatenate([first, second])[order]
        return both

    kinds = np.repeat(
        np.arange(3, dtype=np.uint8), [len(contended.index), len(others.index), len(held.index)]
    )
    lock, thread, holder = (
        joined("lock", "lock"),
        joined("thread", "thread"),
        joined("holder", None),
    )
    names = ("acquired", "timed out", "failed try", "interrupted", "cancelled", "open")
    outcomes = ("", *(names[outcome] for outcome in Outcome))
    outcome = joined("outcome", None).astype(np.uint8)
    outcome = np.where(kinds[order] < 2, np.minimum(outcome, len(names) - 1) + 1, 0)
    return {
        "event": TextColumn(kinds[order], ("wait", "coordination", "hold")),
        "lock": _texts(lock, lambda one: name(trace.lock(one).label)),
        "lock_id": lock,
        "lock_type": _texts(lock, lambda one: name(trace.lock(one).type)),
        "lock_made": _texts(lock, lambda one: _place(trace.lock(one).site)),
        "thread": _texts(thread, lambda one: name(trace.thread(one).label)),
        "thread_id": thread,
        "start_ns": start[order],
        "end_ns": np.concatenate([contended.end_ns, others.end_ns, held.end_ns])[order],
        "spin_ns": joined("spin_ns", None),
        "park_ns": joined("park_ns", None),
        "gil_ns": joined("gil_ns", None),
        "cpu_ns": joined("spin_cpu_ns", "cpu_ns"),
        "waiters": joined("waiters", "waiters"),
        "outcome": TextColumn(outcome, outcomes),
        "site": _sites(trace, joined("stack", "stack"), joined(None, "site")),
        "holder": _texts(holder, lambda one: name(trace.thread(one).label) if one else ""),
        "holder_site": _sites(trace, joined("holder_stack", None), joined("holder_site", None)),
    }


def _texts(column: Integers, text: Callable[[int], str]) -> TextColumn:
    """Return the texts that a column of ids stands for."""
    ids, which = distinct(column)
    return TextColumn(which, tuple(text(one) for (one,) in ids))


def _sites(trace: Trace, stack: Integers, site: Integers) -> TextColumn:
    """Return places: of the acquire if that is user code, else of the stack's user frame."""
    pairs, which = distinct(stack, site)
    places = []
    for stack_id, site_id in pairs:
        acquired = trace.frames.get(site_id)
        frames = trace.stack(stack_id)
        chosen = (acquired and user_frame((acquired,))) or user_frame(frames)
        places.append(_place(chosen or acquired or (frames[0] if frames else None)))
    return TextColumn(which, tuple(places))


def _place(frame: Frame | None) -> str:
    """Return `file:line function`."""
    if frame is None:
        return ""
    return f"{visible(frame.filename)}:{frame.line} {name(frame.function)}"
