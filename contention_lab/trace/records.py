"""The arrays of a trace, made from the chunks they were written in.

It does not read files. One chunk is passed on as it is, so that a mapped file is not copied;
several are joined once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from contention_lab.trace.columns import Columns
from contention_lab.trace.layer_schema import GIL_TOTAL
from contention_lab.trace.mapped import let_go
from contention_lab.trace.schema import (
    COUNTER,
    FIXED_RECORDS,
    GIL_SAMPLE,
    HOLD,
    LOAD,
    LOOP_STEP,
    ORDER,
    STATE,
    STATUS,
    WAIT,
    ChunkKind,
    HoldFlag,
    Outcome,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Records: TypeAlias = npt.NDArray[np.void]
"""An array of one of the structured dtypes of `schema.py`."""


def joined_waits(chunks: Sequence[Records]) -> Records:
    """Return all wait records, `schema.WAIT`, in the order of the file.

    A wait that was written while it was open, and again when it was over, is there once.
    """
    records = _joined(chunks, WAIT)
    return _settled(records, _replaced_waits(records))


def wait_columns(chunks: Sequence[Records]) -> Columns:
    """Return the same as `joined_waits` by field."""
    return Columns([(len(one), partial(_as_it_is, one)) for one in chunks], WAIT, _replaced_waits)


def hold_columns(chunks: Sequence[tuple[int, Records]]) -> Columns:
    """Return the same as `joined_holds` by field."""
    reads = [(len(records), partial(_as_holds, thread, records)) for thread, records in chunks]
    return Columns(reads, HOLD, _replaced_holds)


def joined_orders(chunks: Sequence[Records]) -> Records:
    """Return in which order locks were taken, `schema.ORDER`, in the order of the file."""
    return _joined(chunks, ORDER)


def joined_gil(chunks: Sequence[Records]) -> Records:
    """Return all samples of the GIL, `schema.GIL_SAMPLE`, in the order of the file."""
    return _joined(chunks, GIL_SAMPLE)


def joined_beats(chunks: Sequence[Records]) -> Records:
    """Return all that the recorder said of itself, `schema.STATUS`, in the order of the file."""
    return _joined(chunks, STATUS)


def joined_states(chunks: Sequence[Records]) -> Records:
    """Return all samples of threads, `schema.STATE`, in the order of the file."""
    return _joined(chunks, STATE)


def joined_steps(chunks: Sequence[Records]) -> Records:
    """Return the slow steps of event loops, `schema.LOOP_STEP`, in the order of the file."""
    return _joined(chunks, LOOP_STEP)


def joined_load(chunks: Sequence[Records]) -> Records:
    """Return all samples of the process, `schema.LOAD`, in the order of the file."""
    return _joined(chunks, LOAD)


def joined_holds(chunks: Sequence[tuple[int, Records]]) -> Records:
    """Return all holds, `schema.HOLD`, in the order of the file.

    Parameters
    ----------
    chunks
        Pairs of a thread and its records; the thread counts for `schema.SHORT_HOLD` only.

    A hold that was written while it lasted, and again when it was over, is there once.
    """
    if len(chunks) == 1:
        holds = _as_holds(*chunks[0]).view()
    else:
        holds = np.empty(sum(len(records) for _, records in chunks), dtype=HOLD)
        at = 0
        for thread, records in chunks:
            holds[at : at + len(records)] = _as_holds(thread, records)
            at += len(records)
            let_go(records)
    return _settled(_read_only(holds), _replaced_holds(holds))


def _as_holds(thread: int, records: Records) -> Records:
    """Return records of short holds as those of any."""
    if records.dtype == HOLD:
        return records
    holds = np.zeros(len(records), dtype=HOLD)
    holds["start_ns"] = records["start_ns"]
    holds["end_ns"] = records["start_ns"] + records["hold_ns"].astype(np.uint64)
    holds["lock"] = records["lock"]
    holds["site"] = records["site"]
    holds["thread"] = thread
    holds["release_thread"] = thread
    holds["flags"] = int(HoldFlag.UNCONTENDED)
    return holds


def joined_events(chunks: Sequence[Records], kind: ChunkKind) -> Records:
    """Return all records of a kind of fixed size, in the order of the file."""
    return _joined(chunks, FIXED_RECORDS[kind])


def last_gil_totals(chunks: Sequence[Records]) -> Records:
    """Return the last `schema.GIL_TOTAL` of each thread, ordered by thread."""
    records = _joined(chunks, GIL_TOTAL)
    _, from_the_end = np.unique(records["thread"][::-1], return_index=True)
    return _read_only(records[len(records) - 1 - from_the_end])


def last_counters(chunks: Sequence[Records]) -> Records:
    """Return the last `schema.COUNTER` of each lock and thread, ordered by lock, then thread."""
    records = _joined(chunks, COUNTER)
    pair = records["lock"].astype(np.uint64) << np.uint64(32) | records["thread"]
    _, from_the_end = np.unique(pair[::-1], return_index=True)
    return _read_only(records[len(records) - 1 - from_the_end])


def _as_it_is(records: Records) -> Records:
    return records


def _replaced_waits(records: Records | Columns) -> npt.NDArray[np.int64]:
    return _replaced(records, records["outcome"] == Outcome.OPEN)


def _replaced_holds(records: Records | Columns) -> npt.NDArray[np.int64]:
    return _replaced(records, records["flags"] & int(HoldFlag.OPEN) != 0)


def _replaced(records: Records | Columns, is_open: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return which records are of something open that a later record of the same thing replaces."""
    if not is_open.any():
        return np.zeros(0, dtype=np.int64)
    again = np.flatnonzero(np.isin(records["start_ns"], records["start_ns"][is_open]))
    things = records[again]
    last: dict[tuple[int, int, int], int] = {}
    columns = (things[name].tolist() for name in ("thread", "lock", "start_ns"))
    for at, thing in zip(again.tolist(), zip(*columns, strict=True), strict=True):
        if thing not in last or is_open[last[thing]]:
            last[thing] = at
    return np.setdiff1d(again[is_open[again]], np.array([*last.values()]))


def _settled(records: Records, replaced: npt.NDArray[np.int64]) -> Records:
    return _read_only(np.delete(records, replaced)) if len(replaced) else records


def _joined(chunks: Sequence[Records], dtype: np.dtype[np.void]) -> Records:
    if len(chunks) == 1:
        return chunks[0]
    records = np.empty(sum(len(chunk) for chunk in chunks), dtype=dtype)
    at = 0
    for chunk in chunks:
        records[at : at + len(chunk)] = chunk
        at += len(chunk)
        let_go(chunk)
    return _read_only(records)


def _read_only(records: Records) -> Records:
    records.setflags(write=False)
    return records
