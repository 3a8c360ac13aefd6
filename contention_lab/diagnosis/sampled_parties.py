"""Places that threads were seen at, where there is no lock whose records would say it.

Samples with stacks are few (twenty a second) and of all threads at once: they say where code was,
not for how long. How long is the caller's to say.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.intervals import LAST_TIME_NS
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.sites import user_frame
from contention_lab.diagnosis.finding import Party
from contention_lab.trace import HoldFlag, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from contention_lab.trace import Frame, Records, Trace

BOUNDS: Final = ("start_ns", "end_ns")
PARTIES: Final = 10
"""Places named, at most."""


def stack_samples(trace: Trace) -> Records:
    """Return the samples with stacks of threads that are not in a recorded wait."""
    samples: Records = trace.states[trace.states["stack"] != 0]
    columns = trace.wait_columns
    if not len(samples) or not len(columns):
        return samples
    # During failed tries a thread runs.
    tried = columns["outcome"] != Outcome.FAILED_TRY
    waits = {name: columns[name][tried] for name in ("thread", *BOUNDS)}
    if not len(waits["thread"]):
        return samples
    thread = waits["thread"]
    start, end, at = on_one_line(
        *((thread, np.minimum(waits[name], LAST_TIME_NS).astype(np.int64)) for name in BOUNDS),
        (
            samples["thread"].astype(np.int64),
            np.minimum(samples["time_ns"], LAST_TIME_NS).astype(np.int64),
        ),
    )
    # Samples are few and waits many: it is the waits that are looked up.
    order = np.argsort(at, kind="stable")
    changes = np.bincount(np.searchsorted(at[order], start), minlength=len(at) + 1)
    changes -= np.bincount(np.searchsorted(at[order], end), minlength=len(at) + 1)
    waiting = np.zeros(len(at), dtype=np.bool_)
    waiting[order] = np.cumsum(changes)[:-1] > 0
    awake: Records = samples[~waiting]
    return awake


def seen_at(
    trace: Trace,
    samples: Records,
    chosen: npt.NDArray[Any],
    total_s: float,
    threads: Collection[int] | None = None,
) -> tuple[Party, ...]:
    """Return the places of chosen samples, the most frequent first.

    Parameters
    ----------
    trace
        The trace.
    samples
        Samples with stacks.
    chosen
        A mask of those that count.
    total_s
        The time that is divided over the places.
    threads
        Ids of the only threads that count; all by default.
    """
    if threads is not None:
        chosen = chosen & np.isin(samples["thread"], list(threads))
    ids, counts = np.unique(samples["stack"][chosen], return_counts=True)
    whole = int(counts.sum())
    places: dict[tuple[str, str] | None, dict[int, int]] = defaultdict(dict)
    for stack, count in zip(ids.tolist(), counts.tolist(), strict=True):
        frame = user_frame(trace.stack(stack))
        places[None if frame is None else (frame.filename, frame.function)][stack] = count
    order = sorted(places.values(), key=lambda stacks: -sum(stacks.values()))
    found = []
    for stacks in order[:PARTIES]:
        heaviest = trace.stack(max(stacks, key=lambda stack: (stacks[stack], -stack)))
        share = sum(stacks.values()) / whole
        site: Frame | None = user_frame(heaviest)
        found.append(Party(site, heaviest, share * total_s, share))
    return tuple(found)


def held_at(trace: Trace, locks: Collection[int], total_s: float) -> tuple[Party, ...]:
    """Return the places where locks are taken that nobody waits for, the most frequent first.

    Of locks taken many thousand times a few such holds are recorded, each standing for as many.
    """
    columns = trace.hold_columns
    mine = np.flatnonzero(np.isin(columns["lock"], list(locks)))
    kinds = columns["flags"][mine] & int(HoldFlag.UNCONTENDED | HoldFlag.WATCHED)
    mine = mine[kinds == int(HoldFlag.UNCONTENDED)]
    both = np.stack([columns["stack"][mine], columns["site"][mine]], axis=1)
    keys, counts = np.unique(both, axis=0, return_counts=True)
    places: dict[Frame, list[tuple[int, tuple[Frame, ...]]]] = defaultdict(list)
    for (stack, site), count in zip(keys.tolist(), counts.tolist(), strict=True):
        frames = trace.stack(stack) or ((trace.frames[site],) if site in trace.frames else ())
        frame = user_frame(frames)
        if frame is not None:
            places[frame].append((count, frames))
    whole = sum(count for found in places.values() for count, _ in found)
    order = sorted(places.items(), key=lambda place: -sum(count for count, _ in place[1]))
    parties = []
    for frame, found in order[:PARTIES]:
        share = sum(count for count, _ in found) / whole
        heaviest = max(found, key=lambda one: one[0])[1]
        parties.append(Party(frame, heaviest, share * total_s, share))
    return tuple(parties)


def waited_at(trace: Trace, waits: Records) -> tuple[Party, ...]:
    """Return the places of waits, by their time, the most first."""
    length = np.maximum(0, waits["end_ns"].astype(np.int64) - waits["start_ns"].astype(np.int64))
    ids, which = np.unique(waits["stack"], return_inverse=True)
    sums = np.bincount(which, weights=length, minlength=len(ids)) / 1e9
    whole_s = float(sums.sum())
    order = np.argsort(-sums, kind="stable")[:PARTIES].tolist()
    found = []
    for at in order:
        stack = trace.stack(int(ids[at]))
        share = float(sums[at]) / whole_s if whole_s else 1.0 / len(order)
        found.append(Party(user_frame(stack), stack, float(sums[at]), share))
    return tuple(found)
