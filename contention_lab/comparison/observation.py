"""The figures of one recording that two recordings can be compared by.

Lines move from one version of a program to the next, so a lock is known by its name, its type and
the function that makes it, and a place by its function and file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from contention_lab.analysis import by_site, lock_table
from contention_lab.analysis.sites import is_user_code
from contention_lab.analysis.weighted_stacks import weighted_stacks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.analysis.lock_table import LockRow
    from contention_lab.analysis.weighted_stacks import Step
    from contention_lab.trace import Lock, Trace

Role = Literal["victim", "culprit"]

QUANTITIES: Final[Mapping[str, tuple[str, str]]] = {
    "wait": ("wait_s", "waiting for locks, all threads together, in seconds"),
    "spin": ("spin_s", "of it spinning, in seconds"),
    "gil": ("gil_s", "waiting for the GIL with the lock already acquired, in seconds"),
    "held": ("hold_s", "held, in seconds"),
    "p99": ("wait_p99_s", "the wait that one in a hundred exceeds, in seconds"),
    "max": ("wait_max_s", "the longest wait, in seconds"),
    "contended": ("contended", "acquires that waited"),
    "acquires": ("acquires", "acquires"),
}
"""What conditions can be about: by name, the figure of a `LockRow` and what it is."""

LARGEST: Final = frozenset({"p99", "max"})
"""Quantities of which the largest of several locks counts, and not the sum."""

WALL: Final = "wall"
"""The one quantity of the whole recording: how long it lasted, in seconds."""


class LockKey(NamedTuple):
    """What a lock is known by across versions of a program."""

    name: str
    type: str
    file: str
    function: str


class Place(NamedTuple):
    """Where somebody waited for a lock, or made others wait."""

    lock: LockKey
    role: Role
    function: str
    file: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One recording in figures.

    Attributes
    ----------
    wall_s
        How long it lasted.
    locks
        Figures by quantity, by lock.
    places
        Waiting in seconds, by place.
    dropped
        Waits and holds that were lost.
    """

    wall_s: float
    locks: Mapping[LockKey, Mapping[str, float]]
    places: Mapping[Place, float]
    dropped: int = 0
    labels: Mapping[LockKey, str] = field(default_factory=dict)

    def total(self, quantity: str) -> float:
        """Return a quantity of the whole recording: the sum, or the largest, over all locks."""
        if quantity == WALL:
            return self.wall_s
        return combined(quantity, [figures[quantity] for figures in self.locks.values()])


def observed(trace: Trace) -> Observation:
    """Return the figures of a recording."""
    merged = by_site(trace)
    rows = lock_table(merged)
    grouped: dict[LockKey, list[LockRow]] = {}
    labels: dict[LockKey, str] = {}
    for row in rows:
        key = lock_key(row.lock)
        grouped.setdefault(key, []).append(row)
        labels.setdefault(key, _shown(row.lock))
    locks = {
        key: {
            quantity: combined(quantity, [float(getattr(row, figure)) for row in found])
            for quantity, (figure, _) in QUANTITIES.items()
        }
        for key, found in grouped.items()
    }
    status = trace.status
    lost = 0 if status is None else int(status["dropped_waits"]) + int(status["dropped_holds"])
    return Observation(trace.duration_ns / 1e9, locks, _places(trace), lost, labels)


def combined(quantity: str, values: Sequence[float]) -> float:
    """Return what several locks have of a quantity together."""
    return max(values, default=0.0) if quantity in LARGEST else float(sum(values))


def lock_key(lock: Lock) -> LockKey:
    """Return what a lock is known by; a lock without a name by the function that makes it."""
    site = lock.site
    name = "" if lock.is_shared else lock.name or lock.variable
    if site is None:
        return LockKey(name or lock.label, lock.type, "", "")
    made = f"{site.module}:{site.function}" + (f"#{lock.call}" if lock.call > 1 else "")
    return LockKey(name or made, lock.type, PurePath(site.filename).name, site.function)


def lock_keys(trace: Trace) -> dict[tuple[str, str], LockKey]:
    """Return what the locks of a recording are known by, by their label and file in stacks."""
    return {
        (lock.label, lock.site.filename if lock.site else ""): lock_key(lock)
        for lock in trace.locks.values()
    }


def _shown(lock: Lock) -> str:
    """Return the lock's label, with where it was made if that does not say it."""
    if lock.site is None or lock.label.endswith(f":{lock.site.line}"):
        return lock.label
    return f"{lock.label} ({lock.site.place})"


def _places(trace: Trace) -> dict[Place, float]:
    """Return the waiting by victims' and by culprits' places."""
    keys = lock_keys(trace)
    found: dict[Place, float] = {}
    ends: tuple[tuple[Role, int], ...] = (("victim", -1), ("culprit", 0))
    for role, at in ends:
        for stack in weighted_stacks(trace, role):
            lock = stack.steps[at]
            frames = stack.steps[:-1] if role == "victim" else stack.steps[1:]
            key = keys.get((lock.name, lock.file), LockKey(lock.name, "", "", ""))
            step = _user_step(frames)
            place = Place(key, role, step.name, PurePath(step.file).name) if step else None
            if place is not None:
                found[place] = found.get(place, 0.0) + stack.ns / 1e9
    return found


def _user_step(steps: Sequence[Step]) -> Step | None:
    """Return the innermost step that is user code, else the innermost."""
    own = (step for step in reversed(steps) if step.file and is_user_code(step.file))
    return next(own, steps[-1] if steps else None)
