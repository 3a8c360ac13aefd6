"""The root of the waiting for a lock, in words: whom its holder waited for in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.diagnosis.wording import enumeration, lock_name, percent, place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.analysis.chains import ChainStep
    from contention_lab.diagnosis.finding import AccusedLock
    from contention_lab.trace import Frame, Trace


@dataclass(frozen=True, slots=True)
class Root:
    """What the waiting for a lock comes down to.

    Attributes
    ----------
    share
        Of the waiting for the first lock, what arrives at the root.
    path
        The locks to which it is passed on, with the code that holds them; the last is the root.
    """

    share: float
    path: tuple[tuple[AccusedLock | None, Frame | None], ...]

    def clause(self) -> str:
        """Say it, as the end of a sentence."""
        steps = [f"for {lock_name(lock)}, held by {place(code)}" for lock, code in self.path]
        waits = enumeration([steps[0], *(f"that one in turn {step}" for step in steps[1:])])
        return f"; for {percent(self.share)} of that its holder itself waits {waits}"


def root_of(
    trace: Trace,
    steps: Sequence[ChainStep],
    names: Mapping[int, AccusedLock],
) -> Root:
    """Return what a chain of one step or more leads to.

    Parameters
    ----------
    trace
        The trace.
    steps
        From `analysis.chains.chain`.
    names
        What to call locks, by id.
    """
    path = tuple((names.get(step.lock), _holder(trace, step.hold)) for step in steps)
    return Root(min(1.0, steps[-1].share), path)


def _holder(trace: Trace, hold: int) -> Frame | None:
    """Return where a hold was acquired, in user code if that is known."""
    record = trace.hold_columns[hold]
    frame = trace.frames.get(int(record["site"]))
    if frame is not None and is_user_code(frame.filename):
        return frame
    return user_frame(trace.stack(int(record["stack"]))) or frame
