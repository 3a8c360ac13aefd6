"""Places of the program as they are written in a remedy, and steps as they lie about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.simulate.batch.sections import AT_ACQUIRE, AT_RELEASE, INSIDE
from contention_lab.simulate.remedies.remedy import RemedyError, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contention_lab.simulate.batch.sections import Sections
    from contention_lab.simulate.batch.target import Site, Target


def site_of(text: str, target: Target, form: str) -> Site:
    """Return the place that is meant.

    Raises
    ------
    RemedyError
        There is no such place that takes the lock.
    """
    found = target.site(text)
    if found is None:
        raise RemedyError(f"{form}: {text!r} does not take `{target.label}`; {known(target)}")
    return found


def site_and_share(
    text: str, target: Target, form: str, default: float | None
) -> tuple[Site, float]:
    """Return the place and the share that are meant by `SITE[:SHARE]`.

    Raises
    ------
    RemedyError
        There is no such place, or it is no share, or it is missing and there is no default.
    """
    if default is not None and target.site(text) is not None:
        return site_of(text, target, form), default
    name, colon, share = text.rpartition(":")
    if not colon or target.site(name) is None:
        site_of(text if not colon or default is not None else name, target, form)
        raise RemedyError(f"{form}: how much of {text}? For example {text}:50")
    return site_of(name, target, form), share_of(share, form)


def known(target: Target) -> str:
    """Return the places that take the lock, for a message."""
    if not target.sites:
        return "no place that takes it was recorded"
    return "the lock is taken by " + ", ".join(
        f"{site} ({site.places[0]})" for site in target.sites[:6]
    )


def placed(found: Sections) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each step where its section begins, and its place in it, as `rearranged` wants."""
    steps = np.arange(len(found.of_step))
    inside = found.of_step >= 0
    section = np.where(inside, found.acquire[np.maximum(found.of_step, 0)], steps)
    place = np.full(len(steps), INSIDE)
    place[found.acquire] = AT_ACQUIRE
    place[found.release] = AT_RELEASE
    return section, np.where(inside, place, AT_RELEASE)
