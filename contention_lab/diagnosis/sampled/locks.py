"""Findings about locks that threads wait for, where samples show who has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LEAST_HOLDER_SEEN,
    LEAST_SAMPLES,
    LEAST_WAIT_SHARE,
    MOSTLY,
)
from contention_lab.diagnosis.wording import acting, lock_and_origin, percent
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.finding import AccusedLock, Party
    from contention_lab.diagnosis.sampled.facts import Facts, Mask
    from contention_lab.diagnosis.sampled.share import Share


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """A lock that was waited for.

    Attributes
    ----------
    lock
        As findings name it.
    waiting
        The samples of waiting for it.
    moments
        The share of the moments at which anybody waited for it.
    known_share
        The share of the waiting for which a holder was seen.
    holder
        What these holders did meanwhile: share by `Doing`.
    culprits
        Where they were.
    """

    lock: AccusedLock
    waiting: Mask
    moments: Share
    known_share: float
    holder: dict[Doing, float]
    culprits: tuple[Party, ...]

    @property
    def is_blamed(self) -> bool:
        """Whether it is known who makes the others wait."""
        return self.known_share >= LEAST_HOLDER_SEEN

    def holder_share(self, *doings: Doing) -> float:
        """Return the share of the waiting for which the holder did one of some things."""
        return sum(self.holder.get(one, 0.0) for one in doings)


def waited_for(facts: Facts) -> tuple[WaitedFor, ...]:
    """Return the locks that threads waited for enough to say something, the most first."""
    waiting = facts.does(Doing.AWAITS_LOCK) & (facts.lock != 0)
    found = []
    for lock in np.unique(facts.lock[waiting]).tolist():
        mine = waiting & (facts.lock == lock)
        users = np.isin(facts.thread, list(facts.threads(mine)))
        if np.count_nonzero(mine) < LEAST_SAMPLES:
            continue
        if facts.share_of(mine, users).low < LEAST_WAIT_SHARE / 2:
            continue
        index, weight = facts.held_by(mine)
        whole = facts.seconds(mine)
        doing = {
            one: float(weight[facts.doing[index] == int(one)].sum()) / max(1e-12, weight.sum())
            for one in Doing
        }
        found.append(
            WaitedFor(
                facts.accused(lock),
                mine,
                facts.share_of_moments(mine),
                float(weight.sum()) / whole if whole else 0.0,
                doing,
                facts.places(index, weight),
            )
        )
    return tuple(sorted(found, key=lambda one: -facts.seconds(one.waiting)))


def find(facts: Facts, locks: tuple[WaitedFor, ...]) -> Iterator[Finding]:
    """Yield a finding for each lock whose holders were seen, and do not wait for others."""
    for one in locks:
        if not one.is_blamed:
            continue
        if one.holder_share(Doing.AWAITS_LOCK, Doing.COORDINATES, Doing.UNKNOWN) >= MOSTLY:
            continue  # whoever they wait for is to blame
        victims = facts.places_of(one.waiting)
        if one.holder_share(Doing.AWAITS_GIL) >= MOSTLY:
            yield _masked(facts, one, victims)
        elif one.holder_share(Doing.IO, Doing.SLEEPS) >= MOSTLY:
            yield _held(facts, one, victims, "held-across-io", _IO)
        else:
            yield _held(facts, one, victims, "serialised-by-lock", _SERIAL)


_IO: Final = Remedy(
    "move-out", "Do the input, output or sleep before or after, and only the change under it."
)
_SERIAL: Final = Remedy(
    "narrow", "Do less under it: what does not need the lock goes before or after."
)
RECORD: Final = Remedy(
    "record", "Samples infer the holder; for exact figures: contention-lab record PROGRAM."
)


def _held(
    facts: Facts, one: WaitedFor, victims: tuple[Party, ...], kind: str, remedy: Remedy
) -> Finding:
    does = "while blocked" if kind == "held-across-io" else "while working"
    return Finding(
        kind=kind,
        severity=one.moments.value,
        summary=(
            f"By samples, {acting(one.culprits, 'keep')} {lock_and_origin(one.lock)} {does}, "
            f"and {acting(victims, 'wait')} for it {one.moments} of the time "
            f"(holder inferred for {percent(one.known_share)} of that)."
        ),
        lock=one.lock,
        victims=victims,
        culprits=one.culprits,
        evidence=_evidence(facts, one),
        remedies=(remedy, RECORD),
    )


def _masked(facts: Facts, one: WaitedFor, victims: tuple[Party, ...]) -> Finding:
    return Finding(
        kind="gil-masked-lock",
        severity=one.moments.value,
        summary=(
            f"By samples, {lock_and_origin(one.lock)} is waited for {one.moments} of the time, "
            "but who seems to have it waits for the GIL: without the lock they all would."
        ),
        lock=one.lock,
        victims=victims,
        culprits=one.culprits,
        evidence=_evidence(facts, one),
        remedies=(RECORD,),
        acquits=(one.lock,),
    )


def _evidence(facts: Facts, one: WaitedFor) -> dict[str, float | int | None]:
    users = np.isin(facts.thread, list(facts.threads(one.waiting)))
    return {
        "samples": int(np.count_nonzero(one.waiting)),
        "sampled_wait_s": facts.seconds(one.waiting),
        **facts.share_of(one.waiting, users).evidence("sampled_wait_share"),
        **one.moments.evidence("waited_moments"),
        "holder_inferred_share": one.known_share,
        "holder_blocked_share": one.holder_share(Doing.IO, Doing.SLEEPS),
        "holder_gil_share": one.holder_share(Doing.AWAITS_GIL),
    }
