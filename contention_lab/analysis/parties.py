"""Who waited and who held: the user's frame for every wait and every hold.

The victim of a wait is the innermost user frame of its stack. The culprit of a hold is the frame
that acquired the lock if that is user code, else the innermost user frame of the stack at the
release: the place whose code ran while others waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.blame import HAND_OFF, UNRECORDED
from contention_lab.analysis.sites import is_user_code, user_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from contention_lab.analysis.blame import Blame
    from contention_lab.trace import Frame, Records, Trace


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
    which: npt.NDArray[np.intp]


def victims(trace: Trace, waits: Records) -> Parties:
    """Return the user frames of wait records.

    Parameters
    ----------
    waits
        Of `trace.waits`.
    """
    return _parties(waits["stack"], lambda stack: user_frame(trace.stack(stack)))


def holders(trace: Trace, holds: Records) -> Parties:
    """Return the user frames of hold records.

    Parameters
    ----------
    holds
        Of `trace.holds`.
    """
    both = holds["site"].astype(np.int64) << 32 | holds["stack"]
    return _parties(both, lambda key: _holder(trace, key >> 32, key & 0xFFFF_FFFF))


def culprits(trace: Trace, blame: Blame) -> Parties:
    """Return the user frames that made others wait, for each pair of a blame.

    A wait without any recorded hold has the frame at which the holder it names acquired.
    """
    pairs = blame.pairs
    sites = np.zeros(len(pairs), dtype=np.int64)
    stacks = np.zeros(len(pairs), dtype=np.int64)
    held = pairs["hold"] >= 0
    holds = trace.holds[pairs["hold"][held]]
    sites[held], stacks[held] = holds["site"], holds["stack"]
    lost = pairs["hold"] == UNRECORDED
    sites[lost] = trace.waits["holder_site"][pairs["wait"][lost]]
    return _parties(sites << 32 | stacks, lambda key: _holder(trace, key >> 32, key & 0xFFFF_FFFF))


def is_hand_off(blame: Blame) -> npt.NDArray[np.bool_]:
    """Tell for each pair whether nobody is known to have held the lock."""
    found: npt.NDArray[np.bool_] = blame.pairs["hold"] == HAND_OFF
    return found


def _holder(trace: Trace, site: int, stack: int) -> Frame | None:
    frame = trace.frames.get(site)
    if frame is not None and is_user_code(frame.filename):
        return frame
    return user_frame(trace.stack(stack))


def _parties(
    keys: npt.NDArray[np.integer[Any]], frame_of: Callable[[int], Frame | None]
) -> Parties:
    distinct, which = np.unique(keys, return_inverse=True)
    places: dict[Frame | None, int] = {}
    place = [places.setdefault(frame_of(key), len(places)) for key in distinct.tolist()]
    return Parties(tuple(places), np.array(place, dtype=np.intp)[which])
