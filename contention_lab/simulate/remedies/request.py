"""Critical sections turned into requests to a server, in whole or in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.simulate.batch.sections import AT_RELEASE, INSIDE, rearranged, sections
from contention_lab.simulate.packing import OPS
from contention_lab.simulate.remedies.site import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from contention_lab.simulate.history import History
    from contention_lab.simulate.program import Step


def requested(
    one: History,
    locks: Collection[int],
    step: Callable[[int], Step],
    moved: Callable[[NDArray[np.void]], NDArray[np.bool_]],
    *,
    keep_lock: bool = False,
) -> History:
    """Return a history in which a server does some of the work of each critical section.

    Parameters
    ----------
    one
        Whose.
    locks
        Ids of the lock.
    step
        The request for the n-th section; it is given the time of the work.
    moved
        Which of given steps the server does.
    keep_lock
        Whether the section stays, with the request in place of the work; else all that is left of
        it is the request.
    """
    found = sections(one, locks)
    if not len(found):
        return one
    section, place = placed(found)
    inside = (found.of_step >= 0) & (place == INSIDE)
    taken = inside & moved(one.ops)
    work = np.bincount(found.of_step[taken], weights=one.ops["ns"][taken], minlength=len(found))
    gone = taken.copy()
    if not keep_lock:
        gone[found.acquire] = gone[found.release] = True
    asked = np.array([tuple(step(number)) for number in range(len(found))], dtype=OPS)
    asked["ns"] = work
    # A request goes where the section ends, just before its release.
    steps = np.concatenate([np.flatnonzero(~gone), found.release])
    ops = np.concatenate([one.ops[~gone], asked])
    where = np.concatenate([place[~gone], np.full(len(found), AT_RELEASE)])
    if keep_lock:
        where[: -len(found)][place[~gone] == AT_RELEASE] += 1
    sections_of = np.concatenate([section[~gone], found.acquire])
    changed = rearranged(one, steps, ops, sections_of, where)
    changed.holds[changed.ops["code"] > 3] = -1
    return changed
