"""The progress bar of a sweep, on a terminal; elsewhere nothing.

It draws and measures nothing. It redraws once a second: a bar that animates takes CPU time from the
very runs that are being measured.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.progress import Progress

    from contention_lab.sweep.plan import Run
    from contention_lab.sweep.runner import Observer


class Silence:
    """Shows nothing."""

    def planned(self, runs: int) -> None:
        """Ignore the number of runs."""

    def started(self, run: Run) -> None:
        """Ignore a start."""

    def finished(self, run: Run, result: Mapping[str, Any] | None) -> None:
        """Ignore an end."""


class Bar:
    """Shows how many runs are done, what runs now, and how long it may take."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def planned(self, runs: int) -> None:
        """Set the length of the bar."""
        self._progress.update(self._task, total=runs)

    def started(self, run: Run) -> None:
        """Show what runs now."""
        how = "traced" if run.repeat is None else f"run {run.repeat + 1}"
        self._progress.update(self._task, description=f"{run.point}, {how}")

    def finished(self, run: Run, result: Mapping[str, Any] | None) -> None:
        """Advance; a failed run is said at once, above the bar."""
        if result is None:
            self._progress.console.print(f"failed: {run.point}", markup=False)
        self._progress.advance(self._task)


@contextmanager
def sweep_progress() -> Iterator[Observer]:
    """Give an observer that draws on stderr if that is a terminal; NO_COLOR is honoured."""
    if not sys.stderr.isatty():
        yield Silence()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    from rich.progress import TextColumn as Text

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        Text("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=Console(stderr=True), refresh_per_second=1, transient=True
    ) as bar:
        yield Bar(bar)
