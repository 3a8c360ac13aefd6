"""An asynchronous backend: native work is queued under the lock, and done by streams of its own.

Whoever holds the lock only queues what released the GIL; as many streams as there are cores do it
meanwhile, each in the order of its queue. Python code and input and output stay where they are. A
caller that needs the result at once would wait for it: that is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import LockKind
from contention_lab.simulate.packing import Op, OpFlag
from contention_lab.simulate.program import call, post
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError, nothing_more
from contention_lab.simulate.remedies.request import requested

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.program import Step
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "async-backend"
WORTH: Final = 0.3
"""It is suggested if native work is this share of the time under the lock."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    nothing_more(text, FORM)
    if target.held.native <= 0.0:
        raise RemedyError(f"{FORM}: no native work was seen under `{target.label}`")

    def change(batch: Batch) -> Batch:
        first, streams = batch.next_id, target.cores

        def step(number: int) -> Step:
            return post(first + number % streams, 0.0)

        queueing = batch.with_all(
            lambda one: requested(one, target.ids, step, moved=_is_native, keep_lock=True)
        )
        ids = range(first, first + streams)
        changed = queueing.with_kind(ids, LockKind("channel"), "a stream of the backend")
        return replace(
            changed,
            servers=tuple((id_, False) for id_ in ids),
            # The batch is done once the streams are.
            closing=tuple(call(id_, 0.0) for id_ in ids),
        )

    return change


def _is_native(ops: NDArray[np.void]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (ops["code"] == Op.COMPUTE) & ((ops["flags"] & int(OpFlag.GIL)) == 0)
    return found


def suggest(target: Target) -> list[str]:
    """Return that it can be asked, where there is something to queue."""
    held = target.held
    return [""] if held.native >= WORTH * held.total > 0.0 else []


REMEDY: Final = Remedy(
    kind="async-backend",
    form=FORM,
    about="queue the native work done under the lock; streams do it meanwhile",
    warning="only what needs no result at once can be queued; errors surface later, and memory "
    "waits in queues",
    lifts=True,
    read=read,
    suggest=suggest,
)
