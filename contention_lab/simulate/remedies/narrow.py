"""Narrowing: work done in a critical section is done before it, without the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.sections import (
    BEFORE,
    INSIDE,
    rearranged,
    sections,
)
from contention_lab.simulate.packing import Op
from contention_lab.simulate.remedies.remedy import Remedy
from contention_lab.simulate.remedies.site import placed, site_and_share

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Site, Target
    from contention_lab.simulate.history import History
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "narrow=SITE[:SHARE]"
WORTH: Final = 0.1
"""A place is suggested if it has this share of the time that the lock is held."""
SUGGESTED: Final = 2


def read(text: str, target: Target) -> Change:
    """Return the change."""
    site, share = site_and_share(text, target, FORM, default=1.0)

    def change(batch: Batch) -> Batch:
        return batch.with_all(lambda one: _narrowed(one, target, site, share))

    return change


def suggest(target: Target) -> list[str]:
    """Return the places that hold it longest."""
    return [str(site) for site in target.sites if site.share >= WORTH][:SUGGESTED]


def _narrowed(one: History, target: Target, site: Site, share: float) -> History:
    found = sections(one, target.ids, site.records)
    if not len(found):
        return one
    section, place = placed(found)
    timed = (place == INSIDE) & (one.ops["code"] <= Op.SLEEP)
    # What takes time goes before, or partly; the acquire, and locks within, stay in their order.
    before = np.flatnonzero(timed)
    stays = np.flatnonzero(~timed) if share >= 1.0 else np.arange(len(one.ops))
    steps = np.concatenate([before, stays])
    ops = one.ops[steps]
    ops["ns"][: len(before)] *= share
    if share < 1.0:
        ops["ns"][len(before) :][timed] *= 1.0 - share
    where = np.concatenate([np.full(len(before), BEFORE), place[stays]])
    return rearranged(one, steps, ops, section[steps], where)


REMEDY: Final = Remedy(
    kind="narrow",
    form=FORM,
    about="take the code at SITE out of the critical section (all of it, or a SHARE)",
    warning="what other threads must not see half done has to stay under the lock, and what is "
    "read before it may be stale by then",
    lifts=True,
    read=read,
    suggest=suggest,
)
