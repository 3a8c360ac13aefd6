"""Who waited and who held: the user's frame for every wait and every hold.

The victim of a wait is the innermost user frame of its stack. The culprit of a hold is the frame
that acquired the lock if that is user code, else the innermost user frame of the stack at the
release: the place whose code ran while others waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.blame import HAND_OFF, UNRECORDED
from contention_lab.analysis.distinct import distinct, small
from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.trace import Frame

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Trace


GIL: Final = Frame("(waiting for the GIL)", "", 0, 0)
"""Stands for a holder that has the lock but not yet the GIL: no code of its own runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Parties:
    """The frames of one side, and which of them each record has.

    Attributes
    ----------
    frames
        Distinct; None stands for no user code, or no recorded hold.
    which
        For each record a position in `frames`.
    """

    frames: tuple[Frame | None, ...]
    which: npt.NDArray[np.integer[Any]]


def victims(trace: Trace) -> Parties:
    """Return the user frame of every wait, `which` by position in `trace.waits`."""
    keys, which = distinct(trace.wait_columns["stack"])
    return _parties([user_frame(trace.stack(stack)) for (stack,) in keys], which)


def holders(trace: Trace) -> Parties:
    """Return the user frame of every hold, `which` by position in `trace.holds`."""
    keys, which = distinct(trace.hold_columns["site"], trace.hold_columns["stack"])
    return _parties([holder_frame(trace, site, stack) for site, stack in keys], which)


def named_holders(trace: Trace) -> Parties:
    """Return the user frame at which the holder that a wait names acquired, by wait."""
    keys, which = distinct(trace.wait_columns["holder_site"])
    return _parties([holder_frame(trace, site, 0) for (site,) in keys], which)


def culprits(trace: Trace, blame: Blame) -> Parties:
    """Return the user frames that made others wait, for each pair of a blame.

    A wait without any recorded hold has the frame at which the holder it names acquired.
    """
    holding, named = holders(trace), named_holders(trace)
    pairs = blame.pairs
    frames = (*holding.frames, *named.frames, None)
    which = np.full(len(pairs), len(frames) - 1)
    held, lost = pairs["hold"] >= 0, pairs["hold"] == UNRECORDED
    which[held] = holding.which[pairs["hold"][held]]
    which[lost] = len(holding.frames) + named.which[pairs["wait"][lost]]
    return _parties(list(frames), which)


def culprit_stacks(
    trace: Trace, blame: Blame
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Return, for each pair of a blame, a stack of whoever made others wait, 0 for none.

    What the holder was executing when the wait began is the best there is; for a hold that came
    later, what a wait that began during it saw; else the stack at the release.

    Returns
    -------
    stacks
        Stack ids.
    running
        Whether it is what the holder was executing, and not its release.
    """
    pairs = blame.pairs
    waits, holds = trace.wait_columns, trace.hold_columns
    seen = waits["holder_stack"][pairs["wait"]]
    held = np.flatnonzero(pairs["hold"] >= 0)
    wait, hold = pairs["wait"][held], pairs["hold"][held]
    at_start = (holds["thread"][hold] == waits["holder"][wait]) & (
        holds["start_ns"][hold] <= waits["start_ns"][wait]
    )
    seen[held[~at_start]] = 0
    seen[pairs["hold"] == HAND_OFF] = 0
    # Of several sights of one hold, the one that cost the most time stands for it.
    sights = held[seen[held] != 0]
    sights = sights[np.argsort(pairs["ns"][sights], kind="stable")]
    of_hold = np.zeros(len(holds), dtype=np.uint32)
    of_hold[pairs["hold"][sights]] = seen[sights]
    later = held[seen[held] == 0]
    seen[later] = of_hold[pairs["hold"][later]]
    running = seen != 0
    release = held[~running[held]]
    stacks = seen
    stacks[release] = trace.hold_columns["stack"][pairs["hold"][release]]
    return stacks, running


def culprit_threads(trace: Trace, blame: Blame) -> npt.NDArray[np.uint32]:
    """Return, for each pair of a blame, the thread that made others wait, 0 for none."""
    pairs = blame.pairs
    thread = np.zeros(len(pairs), dtype=np.uint32)
    held, lost = pairs["hold"] >= 0, pairs["hold"] == UNRECORDED
    thread[held] = trace.hold_columns["thread"][pairs["hold"][held]]
    thread[lost] = trace.wait_columns["holder"][pairs["wait"][lost]]
    return thread


def holder_frame(trace: Trace, site: int, stack: int) -> Frame | None:
    """Return the frame that stands for a hold: where it was acquired, else what it was doing."""
    frame = trace.frames.get(site)
    if frame is not None and is_user_code(frame.filename):
        return frame
    return user_frame(trace.stack(stack))


def _parties(frames: list[Frame | None], which: npt.NDArray[np.integer[Any]]) -> Parties:
    """Return parties of frames that may occur more than once."""
    places: dict[Frame | None, int] = {}
    place = [places.setdefault(frame, len(places)) for frame in frames]
    return Parties(tuple(places), np.array(place, dtype=small(len(places)))[which])
