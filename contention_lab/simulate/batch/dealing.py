"""Whether work was dealt out to the threads beforehand, or taken by whoever was free.

A thread that is free takes more as long as there is more. So threads that end while others have
much left to do had been given their share; and shares dealt out in turn have as many holds each.
It matters where one thread gets a lock again and again: of work that anybody may take it does most,
of work dealt out its own, and then ends, so that those who waited for it become fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.packing import Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.simulate.history import History

EARLY: Final = 0.2
"""Share of the batch's time between the first thread's end and the last one's from which on the
first ended early."""
LONG: Final = 2.0
"""And it must be so many times as long as the longest piece of work: the last one may be long."""
ALIKE: Final = 0.05
"""By how much numbers of holds may differ that are the same but for the last ones dealt out."""


def was_dealt(members: Sequence[History], ended_ns: Sequence[int], wall_ns: float) -> bool:
    """Tell whether each thread was given its share of the work beforehand, for all that is known.

    Parameters
    ----------
    members
        What the threads did.
    ended_ns
        When each ended.
    wall_ns
        How long all of them took together.
    """
    if len(members) < 2:
        return False
    holds = [int((one.ops["code"] == Op.ACQUIRE).sum()) for one in members]
    if max(holds) - min(holds) > ALIKE * max(holds) + 1:
        return False
    longest = max(float(np.diff(one.spent_ns).max(initial=0.0)) for one in members)
    early_ns = max(ended_ns) - min(ended_ns)
    return early_ns > EARLY * wall_ns and early_ns > LONG * longest
