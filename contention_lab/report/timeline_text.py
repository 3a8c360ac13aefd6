"""A timeline in words: a sentence, what was merged, and the longest waits as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.report.lock_lines import lock_site, lock_title
from contention_lab.report.quantity import count, counted, seconds
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.report.timeline import Timeline
    from contention_lab.report.timeline_contexts import WorstWait
    from contention_lab.trace import Frame

TABLE_ROWS: Final = 12


@dataclass(frozen=True, slots=True)
class WorstRow:
    """A row of the table of the longest waits."""

    number: int
    """Position among the intervals that wait."""
    at_s: float
    wait_s: float
    lock: str
    lock_place: str
    thread: str
    site: str
    place: str
    holder: str
    holder_site: str
    holder_place: str


@dataclass(frozen=True, slots=True)
class TimelineText:
    """What is said of a timeline without drawing it."""

    sentence: str
    aggregated: str
    """Empty if everything is drawn as it was recorded."""
    rows: tuple[WorstRow, ...]


def timeline_text(line: Timeline, numbers: Sequence[tuple[int, WorstWait]]) -> TimelineText:
    """Return the words of a timeline.

    Parameters
    ----------
    line
        The timeline.
    numbers
        The longest waits, each with its position among the intervals that wait.
    """
    rows = tuple(_row(number, wait) for number, wait in numbers[:TABLE_ROWS])
    return TimelineText(_sentence(line), _aggregated(line), rows)


def _sentence(line: Timeline) -> str:
    tasks = sum(thread.is_task for thread in line.threads)
    kinds = ((len(line.threads) - tasks, "thread"), (tasks, "task"))
    about = " and ".join(counted(number, noun) for number, noun in kinds if number)
    about = f"{about or 'No thread'} over {seconds(line.length_ns / 1e9)}"
    if line.rows_left_out:
        about += f" (those that waited and held longest; {count(line.rows_left_out)} more are left"
        about += " out)"
    if not line.wait_count:
        return f"{about}: no wait for a lock was recorded one by one."
    about += f": {counted(line.wait_count, 'wait')} for locks"
    about += f", {seconds(line.wait_ns / 1e9)} in all"
    if line.worst:
        worst = line.worst[0]
        about += f"; the longest, {seconds(worst.wait_ns / 1e9)} from "
        about += f"{seconds(worst.start_ns / 1e9)} on, was {name(worst.thread.label)}"
        about += f" waiting for “{lock_title(worst.context.lock)}”" if worst.context.lock else ""
        if worst.context.holder is not None:
            about += f", held longest by {name(worst.context.holder.label)}"
            about += f" in {name(worst.context.held_at.function)}" if worst.context.held_at else ""
    return about + "."


def _aggregated(line: Timeline) -> str:
    merged = [int(part.count[part.count > 1].sum()) for part in (line.waits, line.holds)]
    if not any(merged):
        return ""
    runs = sum(int(np.count_nonzero(part.count > 1)) for part in (line.waits, line.holds))
    return (
        f"Aggregated: {count(sum(merged))} waits and holds shorter than "
        f"{seconds(line.step_ns / 1e9)} are drawn as {count(runs)} paler runs, each with their "
        "number and sum. Longer ones, and the longest waits, are single."
    )


def _row(number: int, wait: WorstWait) -> WorstRow:
    context = wait.context
    lock = context.lock
    shown = context.doing or context.held_at
    return WorstRow(
        number,
        wait.start_ns / 1e9,
        wait.wait_ns / 1e9,
        lock_title(lock) if lock else "",
        lock_site(lock) if lock else "",
        name(wait.thread.label),
        *_place(context.site),
        name(context.holder.label) if context.holder else "",
        *_place(shown),
    )


def _place(frame: Frame | None) -> tuple[str, str]:
    if frame is None:
        return "", ""
    return name(frame.function), f"{short_path(frame.filename)}:{frame.line}"
