"""Thread time of one trace as bars: the busiest threads one by one, the others together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.report.thread_time_plot import Bar, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.analysis import ThreadTime

MOST_THREADS: Final = 16


def thread_bars(threads: Sequence[ThreadTime]) -> tuple[Bar, ...]:
    """One bar per thread, longest first; beyond `MOST_THREADS`, one bar for the rest."""
    return shown_bars([Bar(_label(entry), _seconds(entry)) for entry in threads])


def shown_bars(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """Put bars in order, the longest first, and the short ones of many together."""
    ordered = sorted(bars, key=lambda bar: -bar.total)
    if len(ordered) <= MOST_THREADS:
        return tuple(ordered)
    shown, rest = ordered[: MOST_THREADS - 1], ordered[MOST_THREADS - 1 :]
    return (*shown, together(f"{len(rest)} more threads", rest))


def _label(entry: ThreadTime) -> str:
    return entry.thread.label


def _seconds(entry: ThreadTime) -> dict[str, float]:
    return {
        "run": entry.run_s,
        "spin": entry.spin_s,
        "park": entry.park_s,
        "gil": entry.gil_s,
        "coordination": entry.coordination_s,
        "other": entry.other_s,
    }
