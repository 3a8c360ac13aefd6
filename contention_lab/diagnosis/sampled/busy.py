"""Findings about threads that are busy, or want to be: spinning, the GIL, too many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.sampled.flow import many_wait
from contention_lab.diagnosis.thresholds import (
    LEAST_GIL_WAIT_SHARE,
    LEAST_ONE_LOCK,
    LEAST_OVERLOAD,
    LEAST_SAMPLED_SPIN,
    LEAST_SAMPLES,
)
from contention_lab.diagnosis.wording import acting, lock_and_origin, number
from contention_lab.trace import Doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.sampled.facts import Facts, Mask


def spinning(facts: Facts) -> Mask:
    """Return samples of threads in a loop that waits for a lock, wanting the GIL in it or not."""
    spins = facts.does(Doing.SPINS)
    places = np.unique(facts.stack[spins & (facts.stack != 0)])
    mask: Mask = spins | (facts.does(Doing.AWAITS_GIL) & np.isin(facts.stack, places))
    return mask


def spin_collapse(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if threads spend much of what they want of CPU and GIL on spinning."""
    spins = spinning(facts)
    wants = spins | facts.does(Doing.RUNNING, Doing.HOLDS_GIL, Doing.AWAITS_GIL)
    of_cpu = facts.share_of(spins, wants)
    count = float(facts.count[spins].sum())
    threads = facts.threads(spins)
    if count < LEAST_SAMPLES or of_cpu.low < LEAST_SAMPLED_SPIN or len(threads) < 2:
        return
    named = facts.lock[spins & (facts.lock != 0)]
    locks, counts = np.unique(named, return_counts=True)
    lock = None
    if len(locks):
        most = int(locks[np.argmax(counts)])
        is_most = counts.max() >= LEAST_ONE_LOCK * counts.sum()
        if is_most and facts.trace.lock(most).site is not None:
            lock = facts.accused(most)
    places = facts.places_of(spins)
    about = f" for {lock_and_origin(lock)}" if lock else ""
    yield Finding(
        kind="spin-collapse",
        severity=facts.share_of_moments(spins).value if facts.together else of_cpu.value,
        summary=(
            f"By samples, {acting(places, 'spin')}{about}: {of_cpu} of the time that threads "
            "run or want to run goes into asking again for what another one has."
        ),
        lock=lock,
        victims=places,
        culprits=places,
        evidence={
            "samples": int(count),
            **of_cpu.evidence("spin_of_running"),
            "spinners": facts.average(spins) if facts.together else None,
        },
        remedies=(Remedy("park", "Let waiters sleep: a lock that blocks."),),
    )


def gil_bound(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if threads wait for the GIL, not in a loop that waits for a lock."""
    waits = facts.does(Doing.AWAITS_GIL) & ~spinning(facts)
    wants = waits | facts.does(Doing.RUNNING, Doing.HOLDS_GIL)
    mine = np.isin(facts.thread, list(facts.threads(waits)))
    waited = facts.share_of(waits, wants & mine)
    if not facts.together or not many_wait(facts, waits) or waited.low < LEAST_GIL_WAIT_SHARE:
        return
    average, moments = facts.average(waits), facts.share_of_moments(waits)
    runs = facts.at_moments_of(waits) & facts.does(Doing.RUNNING, Doing.HOLDS_GIL)
    culprits = facts.places_of(runs)
    yield Finding(
        kind="gil-bound",
        severity=moments.value,
        summary=(
            f"No lock is at fault: by samples, {number(average)} threads on average wait for the "
            f"GIL, somebody does {moments} of the time; {acting(culprits, 'run')} meanwhile."
        ),
        lock=None,
        victims=facts.places_of(waits),
        culprits=culprits,
        evidence={
            "samples": int(np.count_nonzero(waits)),
            "gil_waiters": average,
            **moments.evidence("waited_moments"),
            **waited.evidence("gil_wait_share"),
        },
        remedies=(
            Remedy(
                "no-gil",
                "Processes, native code that lets go of the GIL, or a free-threaded Python.",
            ),
        ),
    )


def native_oversubscription(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if more native threads want a CPU than there are."""
    cores, native = facts.trace.cores, facts.about.get("native_running")
    if cores is None or not isinstance(native, int | float):
        return
    runs = facts.does(Doing.RUNNING)
    wanted = float(native) + facts.average(runs)
    if native < cores / 2 or wanted < LEAST_OVERLOAD * cores:
        return
    yield Finding(
        kind="native-oversubscription",
        severity=min(1.0, 1.0 - cores / wanted),
        summary=(
            f"No Python lock is at fault: by samples, {number(wanted)} threads on average want a "
            f"CPU, {number(float(native))} of them native ones without Python code, and there are "
            f"{cores}."
        ),
        lock=None,
        victims=facts.places_of(runs | facts.does(Doing.UNKNOWN)),
        culprits=(),
        evidence={"wanted": wanted, "native_running": float(native), "cores": cores},
        remedies=(
            Remedy(
                "limit-threads",
                "One native thread for each Python thread: OPENBLAS_NUM_THREADS=1, threadpoolctl.",
            ),
        ),
    )
