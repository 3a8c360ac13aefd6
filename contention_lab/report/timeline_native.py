"""Waits in native code, one by one: what `analysis.native_locks` sums up, for a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.analysis.native_locks import native_locks
from contention_lab.trace import Lock

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NativeWaits:
    """Waits of threads that are known, in columns.

    Attributes
    ----------
    locks
        What is waited for, by the positions in `lock`.
    is_contention
        The wait is for somebody to let go, not for something to do.
    """

    locks: tuple[Lock, ...]
    lock: Integers
    thread: npt.NDArray[np.uint32]
    start_ns: Integers
    end_ns: Integers
    stack: Integers
    holder: Integers
    is_contention: npt.NDArray[np.bool_]


def native_waits(trace: Trace) -> NativeWaits:
    """Return the waits for native locks that no other interval stands for."""
    rows = native_locks(trace)
    locks = tuple(
        Lock(-1 - at, row.identity.type_name, row.identity.text, row.site, 0, 1)
        for at, row in enumerate(rows)
    )
    events = [row.events[row.events["thread"] != 0] for row in rows]
    counts = [len(part) for part in events]

    def column(name: str) -> npt.NDArray[Any]:
        parts = [
            np.minimum(part[name].astype(np.uint64), LAST_TIME_NS).astype(np.int64)
            for part in events
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    contention = np.array([row.identity.is_contention for row in rows], dtype=np.bool_)
    return NativeWaits(
        locks,
        np.repeat(np.arange(len(rows)), counts),
        column("thread").astype(np.uint32),
        column("start_ns"),
        column("end_ns"),
        column("stack"),
        column("holder"),
        np.repeat(contention, counts),
    )
