"""Moving input and output out: what a holder sleeps or is blocked for is done before, unlocked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.sections import BEFORE, INSIDE, rearranged, sections
from contention_lab.simulate.packing import Op
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError
from contention_lab.simulate.remedies.site import placed, site_of

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Site, Target
    from contention_lab.simulate.history import History
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "move-out=SITE"
WORTH: Final = 0.1
"""It is suggested if the lock is held across sleep, input or output for this share of the time."""


def read(text: str, target: Target) -> Change:
    """Return the change."""
    site = site_of(text, target, FORM)
    if target.held.asleep <= 0.0:
        raise RemedyError(f"{FORM}: no input, output or sleep was seen under `{target.label}`")

    def change(batch: Batch) -> Batch:
        return batch.with_all(lambda one: _moved(one, target, site))

    return change


def suggest(target: Target) -> list[str]:
    """Return the place that holds it longest, if it sleeps there."""
    is_worth = target.held.asleep >= WORTH * target.held.total > 0.0
    return [str(site) for site in target.sites[:1]] if is_worth else []


def _moved(one: History, target: Target, site: Site) -> History:
    found = sections(one, target.ids, site.records)
    if not len(found):
        return one
    section, place = placed(found)
    place[(place == INSIDE) & (one.ops["code"] == Op.SLEEP)] = BEFORE
    return rearranged(one, np.arange(len(one.ops)), one.ops, section, place)


REMEDY: Final = Remedy(
    kind="move-out",
    form=FORM,
    about="do the input, output or sleep at SITE before the lock is taken",
    warning="what was read before may have changed by the time the lock is held, and the order of "
    "writes is no longer that of the lock",
    lifts=True,
    read=read,
    suggest=suggest,
)
