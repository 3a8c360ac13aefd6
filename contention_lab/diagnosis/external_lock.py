"""Finding `external-lock`: threads wait for a lock that is not Python's, such as a file's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.thread_samples import thread_samples
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.sampled_parties import seen_at, stack_samples
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_EXTERNAL_SAMPLES,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
    LEAST_WORKING_LOOKS,
)
from contention_lab.diagnosis.wording import duration, names, percent
from contention_lab.trace import Call, Outcome, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile

KIND: Final = "external-lock"

SLEEPERS: Final = ("sqlite3",)
"""Modules whose native code waits for a lock by trying again after a sleep."""

LOOK_NS: Final = 5_000_000
"""Stacks read within this time are of one look."""


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for the program, if it is true of it.

    It is true if two threads or more were seen, for a tenth of their time together,

    - in a system call that waits for a file lock (`flock`, `fcntl`), or
    - asleep in native code of their own accord, in a program that uses a module whose native code
      is known to wait that way for its file's lock (SQLite).

    Any other sleep of native code is not taken for waiting for a lock, and one thread that waits
    is no evidence that another of the program holds. The culprits are those of the same threads
    that were in something else at the moment: one of them has the lock, unless at most moments all
    of them wait. Then it is another process, or a thread that never waits.

    Severity is the share of these threads' time.
    """
    samples, trace = thread_samples(file.trace), file.trace
    waiting = samples.call == Call.FILE_LOCK
    kind = "a file lock"
    if not waiting.any():
        module = next((name for name in SLEEPERS if name in _modules(file)), None)
        waiting = (samples.call == Call.NATIVE_SLEEP) & (module is not None)
        kind = f"the lock of a database file ({module})"
    threads = np.unique(samples.thread[waiting])
    if len(threads) < 2 or np.count_nonzero(waiting) < LEAST_EXTERNAL_SAMPLES:
        return
    call = int(samples.call[waiting][0])
    wait_s, wall_s = 0.0, 0.0
    recorded_s = _recorded_s(file)
    for time in file.times:
        mine = samples.thread == time.thread.id
        if time.thread.id not in threads or not samples.weight_ns[mine].sum():
            continue
        share = samples.weight_ns[mine & waiting].sum() / samples.weight_ns[mine].sum()
        wait_s += share * max(0.0, time.wall_s - recorded_s.get(time.thread.id, 0.0))
        wall_s += time.wall_s
    if wait_s < LEAST_WAIT_S or wait_s < LEAST_WAIT_SHARE * wall_s:
        return
    stacks = stack_samples(trace)
    waits = stacks["call"] == call
    victims = seen_at(trace, stacks, waits, wait_s, threads.tolist())
    at_work = ~waits & (stacks["state"] != State.AWAITS_LOCK) & np.isin(stacks["thread"], threads)
    look = stacks["time_ns"] // LOOK_NS
    at_work &= np.isin(look, look[waits])
    by_one = len(np.unique(look[at_work])) >= LEAST_WORKING_LOOKS * len(np.unique(look[waits]))
    culprits = seen_at(trace, stacks, at_work, wait_s) if by_one else ()
    severity = min(wait_s / wall_s, LARGEST_SEVERITY)
    holder = f" while one of them is in {names(culprits, most=2)}" if culprits else ""
    yield Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{len(threads)} threads wait in {names(victims, most=2)} for {kind}, which no lock of "
            f"Python's shows, for {percent(severity)} of their time ({duration(wait_s)}){holder}."
        ),
        lock=None,
        victims=victims,
        culprits=culprits,
        evidence={
            "external_wait_s": wait_s,
            "threads": len(threads),
            "samples": int(np.count_nonzero(waiting)),
        },
        remedies=(
            Remedy(
                "narrow",
                "Do the work before the lock is taken (for a database: before the transaction "
                "begins) and give it back at once, or give each thread a file of its own.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )


def _modules(file: CaseFile) -> frozenset[str]:
    found = file.trace.meta.get("modules")
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def _recorded_s(file: CaseFile) -> dict[int, float]:
    """Return how long each thread was in recorded waits."""
    columns = file.trace.wait_columns
    tried = columns["outcome"] != Outcome.FAILED_TRY
    waits = {name: columns[name][tried] for name in ("start_ns", "end_ns", "thread")}
    length = np.maximum(0, waits["end_ns"].astype(np.int64) - waits["start_ns"].astype(np.int64))
    ids, which = np.unique(waits["thread"], return_inverse=True)
    return dict(zip(ids.tolist(), (np.bincount(which, weights=length) / 1e9).tolist(), strict=True))
