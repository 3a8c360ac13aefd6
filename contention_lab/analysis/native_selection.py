"""Which waits for native locks are meant: those of some threads, or under some frames.

What a short wait was for, only a later one tells (`settled_stacks`). So they are chosen once that
is known, of a trace that is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace
    from contention_lab.trace.native import NativeFrame

    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NativeSelection:
    """A choice of waits.

    Attributes
    ----------
    thread
        Text in the label of the thread that waits; case does not matter. Empty: any.
    stack
        Text in a function or file of its stack, Python's or native. Empty: any.
    """

    thread: str = ""
    stack: str = ""

    def kept(self, trace: Trace, waits: Records, settled: Integers) -> npt.NDArray[np.bool_]:
        """Tell which waits are chosen; `settled` has the native stack of each."""
        kept = np.ones(len(waits), dtype=np.bool_)
        if self.thread:
            kept &= self._by_thread(trace, waits)
        if self.stack:
            kept &= self._by_stack(trace, waits, settled)
        return kept

    def _by_thread(self, trace: Trace, waits: Records) -> npt.NDArray[np.bool_]:
        chosen = [one for one in trace.threads.values() if _in(self.thread, one.label)]
        native = [one.native_id for one in chosen if not one.is_task]
        known = np.isin(waits["thread"], [one.id for one in chosen])
        # A thread may have waited before the recording knew it as one of Python's.
        unknown = (waits["thread"] == 0) & np.isin(waits["native_id"], native)
        by_thread: npt.NDArray[np.bool_] = known | unknown
        return by_thread

    def _by_stack(self, trace: Trace, waits: Records, settled: Integers) -> npt.NDArray[np.bool_]:
        python = [
            number
            for number in np.unique(waits["stack"]).tolist()
            if any(_in(self.stack, one.function, one.filename) for one in trace.stack(number))
        ]
        native = [
            number
            for number in np.unique(settled).tolist()
            if _any_in(self.stack, trace.native_stack(number))
        ]
        by_stack: npt.NDArray[np.bool_] = np.isin(waits["stack"], python) | np.isin(settled, native)
        return by_stack


def _any_in(text: str, frames: Iterable[NativeFrame]) -> bool:
    return any(_in(text, frame.symbol, frame.image) for frame in frames)


def _in(text: str, *places: str) -> bool:
    return any(text.casefold() in place.casefold() for place in places)
