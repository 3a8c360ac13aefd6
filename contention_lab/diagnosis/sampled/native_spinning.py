"""Finding about native code that spins for a lock, from samples of threads on a CPU.

The lock is known by the function that takes it, so it may be several of one kind. Who has it is
inferred (see `importing/native_locks.py`), and said to be; where too little of the spinning has a
holder that was seen meanwhile, nobody is named.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from contention_lab.diagnosis.finding import Finding, Party, Remedy
from contention_lab.diagnosis.sampled.facts import PARTIES
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_HOLDER_SEEN,
    LEAST_SAMPLES,
    LEAST_SPIN_OF_CPU,
)
from contention_lab.diagnosis.wording import names, percent
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.diagnosis.sampled.facts import Facts, Mask
    from contention_lab.diagnosis.sampled.share import Share
    from contention_lab.trace import Frame


def is_native(facts: Facts) -> bool:
    """Tell whether locks are known by the native functions that take them."""
    return isinstance(facts.about.get("under_locks"), dict)


def find(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each lock that much of the CPU time is spent spinning for.

    At least 30 % of it, with 95 % confidence: spinlocks that nobody has to wait for long stay far
    below. Two threads must be seen spinning, unless the file does not tell threads apart: then
    only the share is known. It is `spin-collapse` where more threads run than there are cores, or
    that is not known: waiters take the CPU from whoever has the lock; else `serialised-by-lock`.
    """
    if not is_native(facts):
        return
    spins = facts.does(Doing.SPINS)
    busy = spins | facts.does(Doing.RUNNING)
    for lock in np.unique(facts.lock[spins & (facts.lock != 0)]).tolist():
        mine = spins & (facts.lock == lock)
        share = facts.share_of(mine, busy)
        alone = len(facts.threads(mine)) < 2 and facts.about.get("threads_known") is not False
        enough = facts.count[mine].sum() >= LEAST_SAMPLES and share.low >= LEAST_SPIN_OF_CPU
        if enough and not alone:
            yield _finding(facts, lock, mine, busy, share)


def _finding(facts: Facts, lock: int, mine: Mask, busy: Mask, share: Share) -> Finding:
    victims = facts.places_of(mine)
    index, weight = facts.held_by(mine)
    known = float(weight.sum()) / max(1e-12, facts.seconds(mine))
    accused = facts.accused(lock)
    culprits = _holders(facts, accused.name, index, weight) if known >= LEAST_HOLDER_SEEN else ()
    cores, threads = facts.trace.cores, len(facts.threads(busy))
    told_apart = facts.about.get("threads_known") is not False
    crowded = cores is None or not told_apart or threads > cores
    who = "; who has it, the samples do not show."
    if culprits:
        main = [one for one in culprits if one.share >= LEAST_HOLDER_SEEN] or culprits
        who = f" while {names(main, most=2)} has it (inferred, for {percent(known)} of that)."
    severity = min(share.value, LARGEST_SEVERITY)
    return Finding(
        kind="spin-collapse" if crowded else "serialised-by-lock",
        severity=severity,
        summary=(
            f"By samples, {share} of the CPU time goes into spinning for a lock, by "
            f"`{accused.name}` in {names(victims, most=2)}{who}"
        ),
        lock=accused,
        victims=victims,
        culprits=culprits,
        evidence={
            "samples": int(facts.count[mine].sum()),
            **share.evidence("spin_of_cpu"),
            "holder_known_share": known,
            **({"threads": threads} if told_apart else {}),
            **({"cores": cores} if cores is not None else {}),
        },
        remedies=_remedies(culprits, crowded=crowded),
    )


def _holders(
    facts: Facts, lock: str, index: npt.NDArray[np.int64], weight: npt.NDArray[np.float64]
) -> tuple[Party, ...]:
    """Return the functions under the lock that holders were in, by the spinning meanwhile."""
    told = facts.about.get("under_locks")
    under = told.get(lock, []) if isinstance(told, dict) else []
    places = {(one[0], one[1]) for one in under if isinstance(one, list) and len(one) == 2}
    sums: dict[Frame | None, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for stack, seconds in zip(facts.stack[index].tolist(), weight.tolist(), strict=True):
        frames = facts.trace.stack(stack)
        inside = (one for one in frames if (one.function, one.filename) in places)
        sums[next(inside, None)][stack] += seconds
    whole = float(weight.sum())
    order = sorted(sums.items(), key=lambda one: -sum(one[1].values()))
    return tuple(
        Party(
            site,
            facts.trace.stack(max(stacks, key=lambda one: (stacks[one], -one))),
            sum(stacks.values()),
            sum(stacks.values()) / whole,
        )
        for site, stacks in order[:PARTIES]
        if site is not None
    )


def _remedies(culprits: tuple[Party, ...], *, crowded: bool) -> tuple[Remedy, ...]:
    code = f" in {names(culprits, most=1)}" if culprits else ""
    narrow = Remedy("narrow", f"Do less{code} under it, or give each part a lock of its own.")
    park = Remedy(
        "park",
        "A lock that lets its waiters sleep gives the CPU back; what is serial stays serial.",
    )
    return (park, narrow) if crowded else (narrow, park)
