"""When whom the critical path was with, while it waited for nothing that is recorded by itself.

At each moment it is with one thread at most. What happens to that thread then, such as a wait for
a lock of native code, keeps the program from its end; what happens to others does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from contention_lab.trace import Thread

    Integers = npt.NDArray[np.int64]
    Ids = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """The running stretches of a critical path; no two of them overlap.

    Attributes
    ----------
    actor
        Ids of threads and tasks.
    native_id
        Of the thread that each is or runs on.
    start_ns, end_ns
        Since when and until when the path was with it; `start_ns < end_ns`.
    """

    actor: Ids
    native_id: Integers
    start_ns: Integers
    end_ns: Integers

    def clipped(
        self, native_id: Ids, start_ns: Integers, end_ns: Integers
    ) -> tuple[npt.NDArray[np.intp], Integers, Integers]:
        """Return the parts of spans in which the path was with the thread that they are of.

        Parameters
        ----------
        native_id, start_ns, end_ns
            Of each span: its thread, and its bounds.

        Returns
        -------
        tuple
            For each part the position of its span, and its bounds.
        """
        known, place = np.unique(self.native_id, return_inverse=True)
        if not len(known) or not len(native_id):
            none = np.zeros(0, dtype=np.int64)
            return none.astype(np.intp), none, none
        at = np.minimum(np.searchsorted(known, native_id), len(known) - 1)
        mine = np.flatnonzero(known[at] == native_id)
        begin, stop, since, until = on_one_line(
            (place, self.start_ns),
            (place, self.end_ns),
            (at[mine], start_ns[mine]),
            (at[mine], end_ns[mine]),
        )
        order = np.argsort(begin, kind="stable")
        first = np.searchsorted(stop[order], since, side="right")
        counts = np.maximum(0, np.searchsorted(begin[order], until, side="left") - first)
        step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        stretch = order[np.repeat(first, counts) + step]
        span = np.repeat(mine, counts)
        start = np.maximum(start_ns[span], self.start_ns[stretch])
        end = np.minimum(end_ns[span], self.end_ns[stretch])
        real = start < end
        return span[real], start[real], end[real]


def stretches(
    threads: Mapping[int, Thread], actor: Ids, start_ns: Integers, end_ns: Integers
) -> Stretches:
    """Return the stretches of a path, without those of no length."""
    real = start_ns < end_ns
    native = [threads[number].native_id for number in actor[real].tolist()]
    return Stretches(
        actor[real].astype(np.int64),
        np.array(native, dtype=np.int64),
        start_ns[real],
        end_ns[real],
    )
