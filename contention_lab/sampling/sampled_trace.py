"""From samples to a trace: what each thread did, and runs of samples that wait as waits.

The times of waits and holds are known to about the interval between two looks, and waits shorter
than that are mostly missed; sums over many are right on average. The trace says so (META's
`samples`), and `diagnose` and `report` repeat it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.sampling.classes import Activity, classify
from contention_lab.sampling.holders import Holders, Look
from contention_lab.sampling.lock_types import coordination_type, lock_type
from contention_lab.sampling.runs import Run, runs
from contention_lab.sampling.stack_locks import StackLocks
from contention_lab.trace import ChunkKind, Doing, HoldFlag, TraceBuilder, WaitKind
from contention_lab.trace.sample_schema import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contention_lab.sampling.frame import SampledFrame
    from contention_lab.sampling.sample import Sample, SampledThread
    from contention_lab.sampling.sources import Sources
    from contention_lab.sampling.stack_locks import NamedLock

CODES: Final = {activity: Doing[activity.name] for activity in Activity}
"""The file's number of each activity."""

_WAITING: Final = frozenset({Activity.AWAITS_LOCK, Activity.SPINS})


@dataclass(frozen=True, slots=True)
class Seen:
    """A sample, and what it says.

    Attributes
    ----------
    sample
        The sample.
    frames
        Its stack, with the texts of its lines.
    activity
        What the thread was doing.
    lock
        What it waits for, or asks for something; None if nothing, or not known.
    """

    sample: Sample
    frames: tuple[SampledFrame, ...]
    activity: Activity
    lock: NamedLock | None = None


@dataclass(slots=True)
class _Writer:
    """A trace in the making, with the ids of what it already has."""

    builder: TraceBuilder
    stacks_of_locks: StackLocks
    threads: list[int]
    locks: dict[tuple[NamedLock | None, str], int] = field(default_factory=dict)
    stacks: dict[tuple[SampledFrame, ...], int] = field(default_factory=dict)

    def stack(self, frames: tuple[SampledFrame, ...]) -> int:
        """Return the id of a stack: of Python frames, if there are any."""
        if frames not in self.stacks:
            shown = [frame for frame in frames if not frame.is_native]
            shown = shown or [*self.stacks_of_locks.taken_from(frames)]
            ids = [
                self.builder.add_frame(
                    frame.function, frame.file or frame.image, frame.line, first_line=0
                )
                for frame in shown
            ]
            self.stacks[frames] = self.builder.add_stack(*ids) if ids else 0
        return self.stacks[frames]

    def lock(self, lock: NamedLock | None, kind: str) -> int:
        """Return the id of a lock; of one nobody could name, one for all of its kind."""
        key = (lock, kind)
        if key not in self.locks:
            made = self.stacks_of_locks.made(lock) if lock is not None else None
            site = 0
            if lock is not None and made is not None:
                site = self.builder.add_frame(
                    lock.name.scope or "<module>", lock.file, made.line, first_line=0
                )
            name = lock.name.label if lock is not None else "a lock without a name"
            self.locks[key] = self.builder.add_lock(
                lock_type(made.call) if made is not None else kind, name=name, site=site
            )
        return self.locks[key]


def sampled_trace(
    samples: Sequence[Sample],
    threads: Sequence[SampledThread],
    sources: Sources,
    *,
    about: Mapping[str, Any],
    locks: StackLocks | None = None,
    together: bool | None = None,
    meta: Mapping[str, Any] | None = None,
    duration_ns: int | None = None,
    pid: int = 1,
    start_unix_ns: int = 0,
) -> TraceBuilder:
    """Return a trace of samples.

    Parameters
    ----------
    samples
        In the order of their time. Those of all threads at one moment have one time.
    threads
        The threads that `Sample.thread` counts in.
    sources
        The program's source files.
    about
        META's `samples`, see `FORMAT.md`: `source`, `interval_ns`, ... With `timed` false or
        `on_cpu_only`, nothing is concluded from two samples together; with `states_known` false,
        nobody is taken to have a lock.
    locks
        What stacks say about locks; by default what the sources say.
    together
        Whether something may be concluded from two samples of one time; see `about` by default.
    meta
        The rest of META.
    duration_ns, pid, start_unix_ns
        As `TraceBuilder` has them.
    """
    builder = TraceBuilder(
        duration_ns=duration_ns,
        pid=pid,
        start_unix_ns=start_unix_ns,
        derive_counters=False,
        meta={**(meta or {}), "samples": dict(about)},
    )
    writer = _Writer(
        builder,
        StackLocks(sources) if locks is None else locks,
        [
            builder.add_thread(
                thread.name,
                start_ns=thread.start_ns,
                end_ns=thread.end_ns,
                cpu_ns=thread.cpu_ns,
                is_main=thread.is_main,
                from_python=thread.from_python,
                native_id=thread.number,
                ident=thread.ident,
            )
            for thread in threads
        ],
    )
    seen = _classed(samples, sources, writer.stacks_of_locks)
    if together is None:
        together = about.get("timed", True) and not about.get("on_cpu_only", False)
    tells = together and about.get("states_known", True)
    holders = _holders(seen, writer.stacks_of_locks) if tells else [0] * len(seen)
    _write_samples(writer, seen, holders)
    if together:
        _write_waits(writer, seen, holders, int(about.get("interval_ns", 0)))
        _write_holds(writer, seen, holders, int(about.get("interval_ns", 0)))
    return builder


def _classed(samples: Sequence[Sample], sources: Sources, locks: StackLocks) -> list[Seen]:
    """Return the samples with what they say."""
    texts: dict[tuple[SampledFrame, ...], tuple[SampledFrame, ...]] = {}
    known: dict[Any, tuple[Activity, NamedLock | None]] = {}
    found = []
    for sample in samples:
        frames = texts.get(sample.frames)
        if frames is None:
            frames = texts[sample.frames] = sources.with_texts(sample.frames)
        key = frames, sample.state, sample.own
        if key not in known:
            activity = classify(frames, sample.state)
            if activity is Activity.UNKNOWN and sample.own is not None:
                activity = classify(frames, sample.own)
            lock = None
            if activity in _WAITING:
                lock = locks.awaited(frames)
            elif activity is Activity.COORDINATES:
                lock = locks.asked(frames)
            known[key] = activity, lock
        found.append(Seen(sample, frames, *known[key]))
    return found


def _holders(seen: Sequence[Seen], locks: StackLocks) -> list[int]:
    """Return, for each sample, the place of the thread that has the lock it waits for, plus 1."""
    looks: list[Look] = []
    moments = [list(group) for _, group in groupby(seen, key=lambda one: one.sample.time_ns)]
    for moment in moments:
        look = Look()
        for one in moment:
            thread = one.sample.thread
            if one.activity in _WAITING and one.lock is not None:
                look.awaited[thread] = one.lock
                look.words[thread] = one.sample.word
            held = locks.held(one.frames)
            if held:
                look.held[thread] = held
        looks.append(look)
    judge = Holders(looks)
    found = []
    for moment, look in zip(moments, looks, strict=True):
        for one in moment:
            lock = one.lock if one.activity in _WAITING else None
            holder = judge.holder(look, lock) if lock is not None else None
            found.append(0 if holder is None or holder == one.sample.thread else holder + 1)
    return found


def _write_samples(writer: _Writer, seen: Sequence[Seen], holders: Sequence[int]) -> None:
    records = np.zeros(len(seen), dtype=SAMPLE)
    for record, one, holder in zip(records, seen, holders, strict=True):
        record["time_ns"] = one.sample.time_ns
        record["weight_ns"] = one.sample.weight_ns
        record["thread"] = writer.threads[one.sample.thread]
        record["stack"] = writer.stack(one.frames)
        record["doing"] = CODES[one.activity]
        record["count"] = one.sample.count
        if one.activity in _WAITING:
            record["lock"] = writer.lock(one.lock, "lock")
        elif one.activity is Activity.COORDINATES:
            record["lock"] = writer.lock(one.lock, coordination_type(one.frames))
        record["holder"] = writer.threads[holder - 1] if holder else 0
    writer.builder.add_layer_events(ChunkKind.SAMPLES, records)


def _write_waits(
    writer: _Writer, seen: Sequence[Seen], holders: Sequence[int], interval_ns: int
) -> None:
    for run in runs(seen, holders, _wait_key, interval_ns):
        first = run.parts[0][0]
        spins = first.activity is Activity.SPINS
        coordinates = first.activity is Activity.COORDINATES
        kind = coordination_type(first.frames) if coordinates else "lock"
        length = run.end_ns - run.start_ns
        holder = run.usual_holder()
        writer.builder.add_wait(
            writer.lock(first.lock, kind),
            writer.threads[first.sample.thread],
            run.start_ns,
            run.end_ns,
            stack=writer.stack(run.usual_frames()),
            holder=writer.threads[holder - 1] if holder else 0,
            spin_ns=length if spins else 0,
            park_ns=0 if spins else length,
            kind=WaitKind.COORDINATION if coordinates else WaitKind.CONTENTION,
        )


def _write_holds(
    writer: _Writer, seen: Sequence[Seen], holders: Sequence[int], interval_ns: int
) -> None:
    """Write holds during which others waited: of the threads that were found to have a lock."""
    for run in _held_runs(seen, holders, interval_ns):
        first, lock = run.parts[0][0], run.lock
        flags = 0 if run.waiters else int(HoldFlag.UNCONTENDED)
        writer.builder.add_hold(
            writer.lock(lock, "lock"),
            writer.threads[first.sample.thread],
            run.start_ns,
            run.end_ns,
            stack=writer.stack(run.usual_frames()),
            waiters=run.waiters,
            flags=flags,
        )


def _wait_key(one: Seen) -> Any:
    """Return what samples in a row must have in common to be one wait; None: it does not wait."""
    if one.activity in _WAITING or one.activity is Activity.COORDINATES:
        return one.activity, one.lock
    return None


def _held_runs(seen: Sequence[Seen], holders: Sequence[int], interval_ns: int) -> list[Run]:
    """Return runs of samples in which a thread had a lock that others waited for."""
    wanted: dict[tuple[int, int], dict[NamedLock, int]] = {}
    for one, holder in zip(seen, holders, strict=True):
        if holder and one.lock is not None:
            locks = wanted.setdefault((one.sample.time_ns, holder - 1), {})
            locks[one.lock] = locks.get(one.lock, 0) + 1
    found = []
    for lock in dict.fromkeys(lock for locks in wanted.values() for lock in locks):

        def key(one: Seen, lock: NamedLock = lock) -> Any:
            return wanted.get((one.sample.time_ns, one.sample.thread), {}).get(lock) and lock

        for run in runs(seen, holders, key, interval_ns):
            run.lock = lock
            run.waiters = max(
                wanted[one.sample.time_ns, one.sample.thread][lock] for one, _ in run.parts
            )
            found.append(run)
    return sorted(found, key=lambda run: run.start_ns)
