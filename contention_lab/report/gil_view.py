"""The GIL as a page shows it: how long it was held and waited for, by thread, place and lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.analysis.gil_use import gil_use
from contention_lab.analysis.gil_waits import gil_waits
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from contention_lab.analysis.gil_use import GilUse
    from contention_lab.analysis.gil_waits import GilWaits
    from contention_lab.trace import Frame, Lock, Trace

SHOWN: Final = 12
"""Threads, places and locks with a row of their own, at most."""


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """One thread. Times in seconds, shares of its own time; None where that is not known."""

    name: str
    held_s: float
    held_share: float
    wait_s: float
    wait_share: float
    waits: int | None
    asked: int | None
    """How often it had to give the GIL up because others asked for it."""


@dataclass(frozen=True, slots=True)
class SiteLine:
    """One place. Times in seconds."""

    function: str
    place: str
    waited_s: float
    held_s: float
    caused_s: float


@dataclass(frozen=True, slots=True)
class LockLine:
    """Waits for the GIL by threads that held a lock."""

    lock: Lock
    waits: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class GilView:
    """What is known of the GIL.

    `exact`: every wait was seen, by the layer below Python. Else it was sampled, and `waits`, the
    quantiles, places and locks are not known.
    """

    exact: bool
    held_share: float
    wait_s: float
    switch_interval_s: float | None
    waits: int | None
    wait_p50_s: float | None
    wait_p99_s: float | None
    wait_max_s: float | None
    threads: tuple[ThreadLine, ...]
    sites: tuple[SiteLine, ...]
    in_locks: tuple[LockLine, ...]


def gil_view(trace: Trace) -> GilView | None:
    """Lay out the GIL of a trace; None on a build without one, or where nothing saw it."""
    use, events = gil_use(trace), gil_waits(trace)
    if events is not None:
        return _exact(events, use)
    return None if use is None else _sampled(use)


def _exact(events: GilWaits, use: GilUse | None) -> GilView:
    # At level counters no wait is recorded by itself.
    single = events.wait_max_s > 0 or not events.waits
    sites = [site for site in events.sites if site.waited_s or site.caused_s]
    return GilView(
        exact=True,
        held_share=events.held_share,
        wait_s=events.wait_s,
        switch_interval_s=use.switch_interval_s if use else None,
        waits=events.waits,
        wait_p50_s=events.wait_p50_s if single else None,
        wait_p99_s=events.wait_p99_s if single else None,
        wait_max_s=events.wait_max_s if single else None,
        threads=tuple(
            ThreadLine(
                name(row.thread.label),
                row.held_s,
                _share(row.held_s, row.wall_s),
                row.wait_s,
                _share(row.wait_s, row.wall_s),
                row.waits,
                row.asked,
            )
            for row in events.threads[:SHOWN]
        ),
        sites=tuple(
            SiteLine(*_place(site.site), site.waited_s, site.held_s, site.caused_s)
            for site in sites[:SHOWN]
        ),
        in_locks=tuple(
            LockLine(row.lock, row.waits, row.wait_s) for row in events.in_locks[:SHOWN]
        ),
    )


def _sampled(use: GilUse) -> GilView:
    threads = [row for row in use.threads if row.held_s or row.wait_s]
    return GilView(
        exact=False,
        held_share=use.held_share,
        wait_s=sum(row.wait_s for row in threads),
        switch_interval_s=use.switch_interval_s,
        waits=None,
        wait_p50_s=None,
        wait_p99_s=None,
        wait_max_s=None,
        threads=tuple(
            ThreadLine(
                name(row.thread.label),
                row.held_s,
                _share(row.held_s, row.wall_s),
                row.wait_s,
                _share(row.wait_s, row.wall_s),
                None,
                None,
            )
            for row in threads[:SHOWN]
        ),
        sites=(),
        in_locks=(),
    )


def _share(part_s: float, whole_s: float) -> float:
    return min(1.0, part_s / whole_s) if whole_s else 0.0


def _place(frame: Frame | None) -> tuple[str, str]:
    if frame is None:
        return "no Python code of the program", ""
    return name(frame.function), f"{short_path(frame.filename)}:{frame.line}"
