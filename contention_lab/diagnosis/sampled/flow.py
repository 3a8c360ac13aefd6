"""Findings about threads that wait for others to do something: queues, barriers, pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.diagnosis.finding import IDLE_WAIT, Finding, Remedy
from contention_lab.diagnosis.thresholds import LEAST_SAMPLED_WAITERS, LEAST_SAMPLES, MOSTLY
from contention_lab.diagnosis.wording import acting, counted, names
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.sampled.facts import Facts, Mask
    from contention_lab.diagnosis.sampled.share import Share


_PUT: Final = (("queue.py", "put"),)
_GET: Final = (("queue.py", "get"), ("futures/thread.py", "_worker"))
_BARRIER: Final = (("threading.py", "_wait"),)
_WORKER: Final = (("futures/thread.py", "_worker"),)
_RESULT: Final = (("futures/_base.py", "result"),)


def many_wait(facts: Facts, waits: Mask) -> bool:
    """Tell whether so many threads are seen waiting, on average, that it limits the program."""
    enough = int(np.count_nonzero(waits)) >= LEAST_SAMPLES
    return enough and facts.average(waits) >= LEAST_SAMPLED_WAITERS


def backpressure(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if threads wait for room in a queue."""
    waits = facts.does(Doing.COORDINATES) & facts.stacks_with(_PUT)
    if not many_wait(facts, waits):
        return
    moments = facts.share_of_moments(waits)
    victims = facts.places_of(waits)
    yield Finding(
        kind="backpressure",
        severity=moments.value,
        summary=(
            f"No lock is at fault: by samples, {acting(victims, 'wait')} {moments} of the "
            "time for room in a queue: whoever takes items from it is too slow."
        ),
        lock=None,
        victims=victims,
        culprits=(),
        evidence=_evidence(facts, waits, moments),
        remedies=(Remedy("more-consumers", "More or faster consumers; no larger queue."),),
    )


def load_imbalance(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if threads wait at a barrier for those that are rarely seen to wait there."""
    waits = facts.does(Doing.COORDINATES) & facts.stacks_with(_BARRIER)
    if not many_wait(facts, waits):
        return
    meeting = facts.threads(waits)
    late = facts.at_moments_of(waits) & np.isin(facts.thread, list(meeting)) & ~waits
    moments = facts.share_of_moments(waits)
    victims, culprits = facts.places_of(waits), facts.places_of(late)
    yield Finding(
        kind="load-imbalance",
        severity=moments.value,
        summary=(
            f"No lock is at fault: by samples, {acting(victims, 'wait')} {moments} of the "
            "time at a barrier for threads that arrive later."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence=_evidence(facts, waits, moments),
        remedies=(Remedy("balance", "Give all threads equal work."),),
    )


def pool_self_starvation(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if, mostly, all workers of pools wait for results."""
    workers = facts.stacks_with(_WORKER)
    waits = facts.does(Doing.COORDINATES) & workers & facts.stacks_with(_RESULT)
    if np.count_nonzero(waits) < LEAST_SAMPLES:
        return
    waiting = np.bincount(facts.moment[waits], minlength=facts.moments)
    there = np.bincount(facts.moment[workers], minlength=facts.moments)
    stuck = (waiting > 0) & (waiting == there)
    all_wait = waits & stuck[facts.moment]
    moments = facts.share_of_moments(all_wait)
    if moments.low < MOSTLY / 2:
        return
    victims = facts.places_of(waits)
    yield Finding(
        kind="pool-self-starvation",
        severity=moments.value,
        summary=(
            f"By samples, {moments} of the time all {int(there.max())} workers of a pool wait in "
            f"{names(victims, most=2)} for results, and nobody is left to make them."
        ),
        lock=None,
        victims=victims,
        culprits=victims,
        evidence=_evidence(facts, waits, facts.share_of_moments(waits)),
        remedies=(Remedy("second-pool", "Another pool for what workers wait for."),),
    )


def idle_wait(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if threads spend most of their time waiting for an item of a queue."""
    waits = facts.does(Doing.COORDINATES) & facts.stacks_with(_GET) & ~facts.stacks_with(_PUT)
    waits &= ~facts.stacks_with(_RESULT)
    mine: Mask = np.isin(facts.thread, list(facts.threads(waits)))
    if np.count_nonzero(waits) < LEAST_SAMPLES:
        return
    idle = facts.share_of(waits, mine)
    if idle.low < MOSTLY:
        return
    moments, victims = facts.share_of_moments(waits), facts.places_of(waits)
    threads = len(facts.threads(waits))
    wait = "waits" if threads == 1 else "wait"
    yield Finding(
        kind=IDLE_WAIT,
        severity=0.0,
        summary=(
            f"No lock is at fault: by samples, {counted(threads, 'thread')} {wait} {idle} of the "
            f"time for an item of a queue in {names(victims, most=2)}: no fault if work arrives "
            "from outside."
        ),
        lock=None,
        victims=victims,
        culprits=(),
        evidence=_evidence(facts, waits, moments),
        remedies=(),
    )


def _evidence(facts: Facts, waits: Mask, moments: Share) -> dict[str, float | int | None]:
    return {
        "samples": int(np.count_nonzero(waits)),
        "sampled_wait_s": facts.seconds(waits),
        **moments.evidence("waited_moments"),
        "waiters": facts.average(waits),
    }
