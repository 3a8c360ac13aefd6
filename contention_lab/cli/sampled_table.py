"""The locks that samples saw threads wait for, as lines of text or a live table.

Of a trace of samples there are no counts: it shows how many threads wait on average, how much of
the time anybody does, and where who has it seems to be.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contention_lab.diagnosis.finding import Party
    from contention_lab.trace import Trace

HEAD: Final = ("lock", "waiting", "of the time", "waits in", "seems to have it")


@dataclass(frozen=True, slots=True)
class SampledRow:
    """One lock.

    Attributes
    ----------
    lock
        Its name.
    waiting
        Threads that wait for it, on average.
    moments
        Share of the time at which any does, with its interval, as text.
    victim, holder
        Where most of the waiting is, and where whoever has it seems to be; empty: not known.
    """

    lock: str
    waiting: float
    moments: str
    victim: str
    holder: str

    def cells(self) -> tuple[str, ...]:
        """Return it as texts, in the order of `HEAD`."""
        holder = self.holder or "not known"
        return (self.lock, f"{self.waiting:.2f}", self.moments, self.victim, holder)


def sampled_rows(trace: Trace) -> list[SampledRow]:
    """Return the locks of a trace of samples, the worst first."""
    from contention_lab.diagnosis.sampled.facts import Facts
    from contention_lab.diagnosis.thresholds import LEAST_HOLDER_SEEN
    from contention_lab.trace import Doing

    facts = Facts(trace)
    waiting = facts.does(Doing.AWAITS_LOCK, Doing.SPINS) & (facts.lock != 0)
    found = []
    for lock in np.unique(facts.lock[waiting]).tolist():
        mine = waiting & (facts.lock == lock)
        index, weight = facts.held_by(mine)
        known = weight.sum() >= LEAST_HOLDER_SEEN * facts.seconds(mine)
        found.append(
            SampledRow(
                trace.lock(lock).label,
                facts.average(mine),
                str(facts.share_of_moments(mine)),
                _first(facts.places_of(mine)),
                _first(facts.places(index, weight)) if known else "",
            )
        )
    return sorted(found, key=lambda row: -row.waiting)


def doings(trace: Trace) -> str:
    """Return what threads do, on average, as one line."""
    from contention_lab.diagnosis.sampled.facts import Facts
    from contention_lab.trace import Doing

    facts = Facts(trace)
    said = {
        "running": (Doing.RUNNING, Doing.HOLDS_GIL),
        "spinning": (Doing.SPINS,),
        "waiting for a lock": (Doing.AWAITS_LOCK,),
        "for the GIL": (Doing.AWAITS_GIL,),
        "for others": (Doing.COORDINATES,),
        "for input": (Doing.IO,),
        "asleep": (Doing.SLEEPS,),
        "not known": (Doing.UNKNOWN,),
    }
    parts = (
        f"{facts.average(facts.does(*which)):.1f} {what}"
        for what, which in said.items()
        if facts.does(*which).any()
    )
    return "threads, on average: " + ", ".join(parts)


def lines(rows: Sequence[SampledRow], most: int) -> Iterator[str]:
    """Yield the lines of a table."""
    from contention_lab.report.visible_text import visible

    table = [HEAD, *(tuple(map(visible, row.cells())) for row in rows[:most])]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()


def watch(pid: int, most: int, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Show the locks of a running process, anew each second, until Ctrl-C or its end.

    On a terminal the table stays in place; elsewhere one follows the other. It also ends where
    `goes_on` says no.

    Raises
    ------
    AttachError
        It cannot be sampled.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from contention_lab.cli.companion import lives
    from contention_lab.sampling.attachment import Options, attach, check
    from contention_lab.sampling.refusal import AttachError
    from contention_lab.trace import parse

    version = check(pid)
    console = Console()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    shown, over = False, ""
    try:
        if live is not None:
            live.start()
            console.show_cursor(True)  # nobody would, if this is killed
        options = Options(duration_s=1.0)
        while goes_on():
            try:
                trace = parse(attach(pid, options, version=version, goes_on=goes_on).bytes())
            except AttachError as error:
                if not shown:
                    raise
                over = str(error) if lives(pid) else f"process {pid} has ended"
                return
            rows, now = sampled_rows(trace), time.strftime("%H:%M:%S")
            title = f"{now} process {pid}, {doings(trace)}"
            shown = True
            if live is None:
                print(title, *lines(rows, most), sep="\n", flush=True)
                continue
            table = Table(*HEAD, title=title, caption="by samples; Ctrl-C ends it")
            for row in rows[:most]:
                table.add_row(*(Text(cell) for cell in row.cells()))
            live.update(table, refresh=True)
    except KeyboardInterrupt:
        return
    finally:
        if live is not None:
            live.stop()
        if over:
            print(over, file=sys.stderr)


def _first(parties: Sequence[Party]) -> str:
    if not parties or parties[0].site is None:
        return ""
    return f"{parties[0].site.function} ({parties[0].site.place})"
