"""A virtual speed-up: the code at a place takes less time under the lock (Curtsinger, Berger 2015).

The question that a profiler cannot answer: what would it bring to optimise this function?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.sections import sections
from contention_lab.simulate.history import history_of
from contention_lab.simulate.remedies.remedy import Remedy
from contention_lab.simulate.remedies.site import site_and_share

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Site, Target
    from contention_lab.simulate.history import History
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "faster=SITE:PCT"
HALF: Final = 50
"""Percent that are suggested."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    site, share = site_and_share(text, target, FORM, default=None)

    def change(batch: Batch) -> Batch:
        return batch.with_all(lambda one: _faster(one, target, site, share))

    return change


def suggest(target: Target) -> list[str]:
    """Return the place that holds it longest, at half its time."""
    return [f"{site}:{HALF}" for site in target.sites[:1]]


def _faster(one: History, target: Target, site: Site, share: float) -> History:
    inside = sections(one, target.ids, site.records).of_step >= 0
    ops = one.ops.copy()
    ops["ns"] = np.where(inside, ops["ns"] * (1.0 - share), ops["ns"])
    return history_of(one.thread, ops, one.holds, one.use)


REMEDY: Final = Remedy(
    kind="faster",
    form=FORM,
    about="the code at SITE takes PCT percent less time under the lock",
    warning="it still holds the lock: threads go on taking turns, only shorter ones",
    lifts=True,
    read=read,
    suggest=suggest,
)
