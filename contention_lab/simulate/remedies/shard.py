"""Sharding: k locks in place of one, each for a part of what it guards, or one for each object.

Parts are drawn alike for each critical section. With a lock for each object, threads are taken to
work on different objects, so that none waits: the best there can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.batch import LockKind
from contention_lab.simulate.batch.sections import sections
from contention_lab.simulate.history import history_of
from contention_lab.simulate.packing import OpFlag
from contention_lab.simulate.remedies.remedy import Remedy, whole_number
from contention_lab.simulate.remedies.remove import unlocked

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.history import History
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "shard=N|per-object"
PER_OBJECT: Final = "per-object"
PARTS: Final = 8
"""Parts that are suggested."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    if text == PER_OBJECT:
        return lambda batch: batch.with_all(lambda one: unlocked(one, target))
    parts = whole_number(text, FORM)

    def change(batch: Batch) -> Batch:
        firsts = {id_: batch.next_id + place * parts for place, id_ in enumerate(target.ids)}
        changed = batch.with_all(lambda one: _sharded(one, target, firsts, parts))
        for id_, first in firsts.items():
            kind = LockKind(batch.kinds[id_].kind, batch.kinds[id_].gil_first)
            name = f"a part of {batch.names[id_]}"
            changed = changed.with_kind(range(first, first + parts), kind, name)
        return changed

    return change


def suggest(_target: Target) -> list[str]:
    """Return both ways."""
    return [str(PARTS), PER_OBJECT]


def _sharded(one: History, target: Target, firsts: dict[int, int], parts: int) -> History:
    found = sections(one, target.ids)
    ops = one.ops.copy()
    uses = np.concatenate([found.acquire, found.release])
    table = np.zeros(max(firsts) + 1, np.int32)
    table[[*firsts]] = [*firsts.values()]
    ops["target"][uses] = table[ops["target"][uses]]
    ops["flags"][uses] |= int(OpFlag.SHARD)
    ops["spread"][uses], ops["ns"][uses] = round(1000 / parts), float(parts)
    return history_of(one.thread, ops, one.holds, one.use)


REMEDY: Final = Remedy(
    kind="shard",
    form=FORM,
    about="N locks in place of one, each for a part, or one for each object",
    warning="two of them taken in different orders deadlock, and so does code that re-enters while "
    "it holds one; updates that span parts can be lost or seen half done; a part that most threads "
    "want stays one lock",
    lifts=True,
    read=read,
    suggest=suggest,
)
