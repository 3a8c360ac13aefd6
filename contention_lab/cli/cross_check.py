"""Samples of a program that is recorded at the same time, and where the two do not agree.

Each looks at the other's weak side: samples see waits of code that is not recorded, and events see
those that are short. A difference within the interval of the samples is none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.diagnosis.sampled.share import Share
    from contention_lab.trace import Trace

LONGEST_S: Final = 86_400.0
SHOWN: Final = 5
"""Locks that are compared, at most."""
LEAST_SHARE: Final = 0.02
"""Share of the time of all threads below which a difference says nothing."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Waiting for one thing, by events and by samples, as shares of the time of all threads."""

    what: str
    events: float
    samples: Share

    @property
    def agree(self) -> bool:
        """Whether the events are within the interval of the samples, or both are next to nothing.

        A tenth is allowed for: the state of a thread and its stack are not read at one moment.
        """
        slack = 0.1 * max(self.events, self.samples.value)
        inside = self.samples.low - slack <= self.events <= self.samples.high + slack
        return inside or max(self.events, self.samples.value) < LEAST_SHARE

    def __str__(self) -> str:
        """Write it as a line."""
        from contention_lab.diagnosis.wording import percent

        verdict = "agree" if self.agree else "DISAGREE"
        return f"{self.what}: events {percent(self.events)}, samples {self.samples}: {verdict}"


def sample(pid: int, path: Path) -> None:
    """Sample a recorded program to its end, beside its trace, and print where the two disagree."""
    from contention_lab.sampling.attachment import Options, attach
    from contention_lab.sampling.refusal import AttachError
    from contention_lab.trace import TraceError, load

    output = path.with_suffix(".samples.clt")
    try:
        attach(pid, Options(duration_s=LONGEST_S), recorded_too=True).write(output)
        recording, samples = load(path), load(output)
    except (AttachError, TraceError, OSError) as error:
        print(f"contention-lab: no samples: {error}", file=sys.stderr)
        return
    lines = [f"  {one}" for one in compared(recording, samples)]
    head = (
        f"contention-lab: samples in {output.name}; shares of the time of all threads, waiting for"
    )
    print(head, *lines, sep="\n", file=sys.stderr, flush=True)


def compared(recording: Trace, samples: Trace) -> list[Compared]:
    """Return what threads waited for, by events and by samples of the same time.

    Locks are the same if they have the same name. All locks together come first.
    """
    from contention_lab.diagnosis.sampled.facts import Facts
    from contention_lab.trace import Doing, Outcome, WaitKind

    facts = Facts(samples)
    begin = samples.start_unix_ns - recording.start_unix_ns
    end = begin + samples.duration_ns
    waits = recording.waits[recording.waits["kind"] == WaitKind.CONTENTION]
    waits = waits[waits["outcome"] != Outcome.OPEN]
    start, stop = (
        np.clip(waits[name].astype(np.int64), begin, end) for name in ("start_ns", "end_ns")
    )
    length_s = np.maximum(0, stop - start) / 1e9
    everything = np.ones(len(facts.doing), dtype=np.bool_)
    whole_s = max(1e-9, facts.seconds(everything))
    waiting = facts.does(Doing.AWAITS_LOCK, Doing.SPINS)
    found = [
        Compared(
            "locks, all together",
            float(length_s.sum()) / whole_s,
            facts.share_of(waiting, everything),
        )
    ]
    theirs = {number: samples.lock(number).label for number in np.unique(facts.lock).tolist()}
    by_label = dict.fromkeys(theirs.values(), 0.0)
    locks, place = np.unique(waits["lock"], return_inverse=True)
    sums_s = np.bincount(place, weights=length_s, minlength=len(locks))
    for number, sum_s in zip(locks.tolist(), sums_s.tolist(), strict=True):
        label = recording.lock(number).label
        by_label[label] = by_label.get(label, 0.0) + sum_s / whole_s
    order = sorted(by_label, key=lambda label: -by_label[label])
    for label in order:
        numbers = [number for number, mine in theirs.items() if mine == label]
        mine = facts.share_of(waiting & np.isin(facts.lock, numbers), everything)
        if max(mine.value, by_label[label]) >= LEAST_SHARE:
            found.append(Compared(f"`{label}`", by_label[label], mine))
    return found[: SHOWN + 1]
