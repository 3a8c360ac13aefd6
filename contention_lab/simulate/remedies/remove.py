"""Removing the lock: nobody waits for it any more. The best that sharing nothing could bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.sections import sections, without
from contention_lab.simulate.remedies.remedy import Remedy, nothing_more

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.history import History
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "remove"


def read(text: str, target: Target) -> Change:
    """Return the change."""
    nothing_more(text, FORM)

    def change(batch: Batch) -> Batch:
        return batch.with_all(lambda one: unlocked(one, target))

    return change


def unlocked(one: History, target: Target) -> History:
    """Return a history without the lock."""
    found = sections(one, target.ids)
    return without(one, np.concatenate([found.acquire, found.release]))


def suggest(_target: Target) -> list[str]:
    """Return that it can always be asked."""
    return [""]


REMEDY: Final = Remedy(
    kind="remove",
    form=FORM,
    about="do without the lock: what it would bring to share nothing",
    warning="only right if threads share nothing under it: else updates are lost",
    lifts=True,
    read=read,
    suggest=suggest,
)
