"""From a file of sampled stacks to a trace.

Where the file has times, samples within half an interval count as of one moment: profilers of this
kind look at one core at a time. Where it has none, the samples of each thread are laid end to end,
and nothing is concluded from two threads together; the trace says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.importing import collapsed, perf_script
from contention_lab.importing.native_locks import NativeStackLocks
from contention_lab.importing.selection import Selection, selected
from contention_lab.importing.stack_file import FORMATS, StackFile, StackFileError
from contention_lab.sampling.classes import ThreadState
from contention_lab.sampling.sample import Sample, SampledThread
from contention_lab.sampling.sampled_trace import sampled_trace
from contention_lab.sampling.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.importing.stack_file import StackThread
    from contention_lab.trace import TraceBuilder

RATE: Final = 100
"""Samples a second where a file does not say."""
BATCHES: Final = 20
"""Parts of equal length that intervals are worked out from."""
SHORTEST_NS: Final = 10_000
"""Samples that follow each other closer are of a profiler that is still finding its pace."""
_LOOKED_AT: Final = 200
"""Lines from which the format is told."""


def read(lines: Sequence[str], name: str, form: str | None) -> StackFile:
    """Read a file's lines.

    Parameters
    ----------
    lines
        All of them.
    name
        The file's, for complaints.
    form
        One of `FORMATS`; None to find out.

    Raises
    ------
    StackFileError
        It is not of that format, or of none.
    """
    if form is None:
        form = _format(lines[:_LOOKED_AT], name)
    file = perf_script.read(lines, name) if form == FORMATS[0] else collapsed.read(lines, name)
    if not any(sample.frames for sample in file.samples):
        why = "its samples have no stacks: record them with -g" if file.samples else "it is empty"
        raise StackFileError(f"{name}: no stack in it; {why}")
    return file


def _format(lines: Sequence[str], name: str) -> str:
    said = [line for line in lines if line.strip()]
    if not said:
        raise StackFileError(f"{name}: it is empty; write `perf script` or collapsed stacks to it")
    if perf_script.looks_so(said):
        return FORMATS[0]
    first = next((line for line in said if not line.startswith("#")), "")
    if ";" not in first and not collapsed.looks_so(first):
        raise StackFileError(
            f"{name}: neither text of `perf script` nor collapsed stacks (`main;work 12`); "
            "--format says which, and what is wrong"
        )
    return FORMATS[1]


def imported_trace(
    file: StackFile,
    name: str,
    *,
    event: str | None = None,
    process: str | None = None,
    rate: float | None = None,
) -> TraceBuilder:
    """Return the trace.

    Parameters
    ----------
    file
        What was read.
    name
        The file's.
    event, process
        See `selected`.
    rate
        Samples a second, where the file does not say.
    """
    try:
        chosen = selected(file, event=event, process=process)
    except StackFileError as error:
        raise StackFileError(f"{name}: {error}") from None
    every = chosen.file.samples
    threads = list(dict.fromkeys(one.thread for one in every))
    timed = all(one.time_ns is not None for one in every)
    interval_ns = _interval_ns(chosen.file, timed, rate)
    samples, duration_ns = (_timed if timed else _untimed)(chosen.file, threads, interval_ns)
    python = any(not frame.is_native for one in samples for frame in one.frames)
    about: dict[str, Any] = {
        "source": file.source,
        "interval_ns": interval_ns,
        "timed": timed,
        "on_cpu_only": file.source == perf_script.SOURCE,
        "event": chosen.event,
        "native": True,
        "threads_known": any(one.number or one.name for one in threads),
        "rate_known": timed or rate is not None,
    }
    locks = NativeStackLocks(Sources(folder=Path.cwd()), (one.frames for one in samples))
    together = timed and len(threads) > 1
    if together and not python:
        locks.learn(samples, len(threads))
    if not python:
        about["under_locks"] = locks.under()
    return sampled_trace(
        samples,
        _threads(threads, samples, python=python),
        Sources(folder=Path.cwd()),
        about=about,
        locks=locks,
        together=together,
        meta=_meta(chosen, name, python=python),
        duration_ns=duration_ns,
        pid=threads[0].process or 1,
    )


def _interval_ns(file: StackFile, timed: bool, rate: float | None) -> int:
    """Return the time that a sample stands for, on average."""
    weights = np.array([one.weight for one in file.samples])
    if timed and file.unit == "ns":
        return max(1, int(np.median(weights)))
    if rate is not None or not timed:
        return max(1, round(1e9 / (rate or RATE)))
    by_thread: dict[StackThread, list[int]] = defaultdict(list)
    for one in file.samples:
        by_thread[one.thread].append(one.time_ns or 0)
    gaps = np.concatenate([np.diff(np.sort(times)) for times in by_thread.values()])
    gaps = gaps[gaps > SHORTEST_NS]
    return max(1, int(np.quantile(gaps, 0.1))) if len(gaps) else round(1e9 / RATE)


def _timed(
    file: StackFile, threads: Sequence[StackThread], interval_ns: int
) -> tuple[list[Sample], int]:
    """Return samples by their time from the first on, those of one window at one time."""
    number = {thread: at for at, thread in enumerate(threads)}
    begun = min(one.time_ns or 0 for one in file.samples)
    unit = interval_ns / float(np.median([one.weight for one in file.samples]))
    scale = 1.0 if file.unit == "ns" else unit
    window = max(1, interval_ns)
    found = []
    for one in file.samples:
        time_ns = ((one.time_ns or 0) - begun) // window * window + window // 2
        weight = max(1, round(one.weight * scale))
        state = ThreadState(on_cpu=one.event != "offcpu-time")
        found.append(Sample(time_ns, weight, number[one.thread], one.frames, state))
    found.sort(key=lambda sample: sample.time_ns)
    return found, found[-1].time_ns + window


def _untimed(
    file: StackFile, threads: Sequence[StackThread], interval_ns: int
) -> tuple[list[Sample], int]:
    """Return samples of each thread one after another, those of one stack spread evenly.

    Nothing is known of their order: they are taken to be independent, and each part of the
    recording to be like the others.
    """
    number = {thread: at for at, thread in enumerate(threads)}
    ends = [0.0] * len(threads)
    state = ThreadState(on_cpu=True if file.source == perf_script.SOURCE else None)
    parts = BATCHES if any(one.weight > 1.0 for one in file.samples) else 1
    found = []
    for _ in range(parts):
        for one in file.samples:
            at, count = number[one.thread], one.weight / parts
            length_ns = max(1.0, count * interval_ns)
            sample = Sample(round(ends[at]), round(length_ns), at, one.frames, state, count=count)
            found.append(sample)
            ends[at] += length_ns
    found.sort(key=lambda sample: sample.time_ns)
    return found, round(max(ends))


def _threads(
    threads: Sequence[StackThread], samples: Sequence[Sample], *, python: bool
) -> list[SampledThread]:
    """Return the threads with their names, lives and CPU times, as far as samples show them."""
    times: list[list[Sample]] = [[] for _ in threads]
    for sample in samples:
        times[sample.thread].append(sample)
    names = Counter(thread.name for thread in threads)
    found = []
    for thread, mine in zip(threads, times, strict=True):
        name = thread.name or ("thread" if thread.number else "all threads")
        if thread.number and (names[thread.name] > 1 or not thread.name):
            name += f" {thread.number}"
        found.append(
            SampledThread(
                thread.number,
                name=name,
                is_main=bool(thread.number) and thread.number == thread.process,
                from_python=python,
                start_ns=max(0, mine[0].time_ns - mine[0].weight_ns // 2),
                end_ns=mine[-1].time_ns + mine[-1].weight_ns // 2,
                cpu_ns=sum(one.weight_ns for one in mine if one.state.on_cpu),
            )
        )
    return found


def _meta(chosen: Selection, name: str, *, python: bool) -> dict[str, Any]:
    meta: dict[str, Any] = {"program": name, "not_seen": [*chosen.not_seen]}
    if chosen.file.machine:
        meta["machine"] = dict(chosen.file.machine)
    if not python:
        meta["python"] = {"version": "", "implementation": "", "gil": False}
    return meta
