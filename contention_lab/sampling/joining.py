"""From stacks over time and looks at the kernel to samples of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.sampling.alignment import best_shift_ns, usual_states
from contention_lab.sampling.classes import FUTEX_CALLS, STACK_ALONE, ThreadState
from contention_lab.sampling.sample import Sample, SampledThread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contention_lab.sampling.alignment import Integers
    from contention_lab.sampling.frame import SampledFrame
    from contention_lab.sampling.py_spy import StackLine
    from contention_lab.sampling.runtime_state import Region
    from contention_lab.sampling.thread_states import KernelState

_ON_CPU: Final = "on a CPU"
_GIL: Final = "the GIL"
_FUTEX: Final = "futex"
_STILL_THERE_NS: Final = 200_000_000
"""A thread that was there so shortly before the end is taken to be there still."""


@dataclass(frozen=True, slots=True)
class KernelLook:
    """What the kernel said of all threads at one moment.

    Attributes
    ----------
    time_ns
        The moment, on the monotonic clock.
    states
        By thread (gettid).
    gil
        The thread that had the GIL, 0 for none that is known; None: not known.
    """

    time_ns: int
    states: Mapping[int, KernelState]
    gil: int | None


@dataclass(frozen=True, slots=True)
class Joined:
    """Samples, and what they cover.

    Attributes
    ----------
    samples, threads
        As `sampled_trace` takes them.
    begun_ns, duration_ns
        The first moment, on the monotonic clock, and from there to the end.
    looks
        Moments.
    native_running
        Threads without Python code that were on a CPU, on average.
    gil_held
        Share of the moments at which some thread had the GIL; None where that is not known.
    states_known
        The kernel was asked what the threads did.
    """

    samples: list[Sample]
    threads: list[SampledThread]
    begun_ns: int
    duration_ns: int
    looks: int
    native_running: float
    gil_held: float | None
    states_known: bool = True


def joined_samples(
    lines: Sequence[StackLine],
    looks: Sequence[KernelLook],
    region: Region | None,
    cpu_ns: Mapping[int, int],
    *,
    native: bool,
    pid: int,
    end_ns: int,
    pause_ns: int,
) -> Joined:
    """Return samples of stack and state, or of stacks alone where the kernel says nothing.

    Parameters
    ----------
    lines
        The stacks of each thread over time.
    looks
        What the kernel said; none where it cannot be asked.
    region
        Where the interpreter's own state is, None where not known.
    cpu_ns
        CPU time by thread.
    native
        Stacks have native frames.
    pid
        The process, whose number is its main thread's.
    end_ns
        The last moment.
    pause_ns
        Between two samples of stacks.
    """
    lines = [line for line in lines if line.number and line.times_ns]
    begun_ns = min((line.times_ns[0] for line in lines), default=end_ns)
    if not looks:
        return _of_stacks(lines, begun_ns, end_ns, pause_ns, pid)
    looks = [look for look in looks if look.time_ns >= begun_ns]
    interval_ns = (end_ns - begun_ns) // max(1, len(looks))
    kinds: dict[str, int] = {}
    ids: dict[tuple[SampledFrame, ...], int] = {}

    def kind(state: KernelState) -> int:
        return kinds.setdefault(_kind(state, region), len(kinds))

    shift_ns = best_shift_ns(
        [_stacks(line, ids) for line in lines],
        [_states(line.number, looks, kind) for line in lines],
        interval_ns // 2,
    )
    found = _found(lines, looks, shift_ns, region)
    usual = usual_states(
        [(ids.get(one.frames, -1), kinds.get(one.kind, -1)) for one in found if one.kind != _GIL]
    )
    names = {number: name for name, number in kinds.items()}
    samples = []
    for one in found:
        mine = usual.get(ids.get(one.frames, -1))
        settled = one.kind if mine is None or one.kind == _GIL else names.get(mine, one.kind)
        samples.append(
            Sample(
                one.look.time_ns - begun_ns,
                one.weight_ns,
                one.place,
                one.frames,
                _thread_state(settled, one, region, native=native),
                one.state.word if settled == one.kind else 0,
                own=None
                if settled == one.kind
                else _thread_state(one.kind, one, region, native=native),
            )
        )
    numbers = {line.number for line in lines}
    foreign = sum(
        state.on_cpu
        for look in looks
        for number, state in look.states.items()
        if number not in numbers
    )
    return Joined(
        samples,
        [_thread(line, begun_ns, end_ns, pid, cpu_ns) for line in lines],
        begun_ns,
        max(0, end_ns - begun_ns),
        len(looks),
        foreign / max(1, len(looks)),
        _gil_held(looks),
    )


def _of_stacks(
    lines: Sequence[StackLine], begun_ns: int, end_ns: int, pause_ns: int, pid: int
) -> Joined:
    """Return samples of stacks alone, at the pace at which they were read."""
    times = range(begun_ns, end_ns, max(1, pause_ns))
    samples = [
        Sample(time_ns - begun_ns, pause_ns, place, frames, STACK_ALONE)
        for time_ns in times
        for place, line in enumerate(lines)
        if (frames := line.at(time_ns)) is not None
    ]
    threads = [_thread(line, begun_ns, end_ns, pid, {}) for line in lines]
    duration_ns = max(0, end_ns - begun_ns)
    return Joined(samples, threads, begun_ns, duration_ns, len(times), 0.0, None, False)


def _gil_held(looks: Sequence[KernelLook]) -> float | None:
    known = [look.gil != 0 for look in looks if look.gil is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class _Found:
    """A thread with a stack at one moment."""

    look: KernelLook
    weight_ns: int
    place: int
    number: int
    frames: tuple[SampledFrame, ...]
    state: KernelState
    kind: str


def _found(
    lines: Sequence[StackLine],
    looks: Sequence[KernelLook],
    shift_ns: int,
    region: Region | None,
) -> list[_Found]:
    places = {line.number: (place, line) for place, line in enumerate(lines)}
    found = []
    for at, look in enumerate(looks):
        before = looks[at - 1].time_ns if at else look.time_ns
        for number, state in look.states.items():
            place, line = places.get(number, (0, None))
            frames = line.at(look.time_ns + shift_ns) if line is not None else None
            if frames is not None:
                weight = look.time_ns - before
                kind = _kind(state, region)
                found.append(_Found(look, weight, place, number, frames, state, kind))
    return found


def _kind(state: KernelState, region: Region | None) -> str:
    """Return what is the same of two moments at which a thread waits for the same sort of thing."""
    if state.on_cpu:
        return _ON_CPU
    if region is not None and state.word in region:
        return _GIL
    return _FUTEX if state.call in FUTEX_CALLS else state.call


def _thread_state(settled: str, one: _Found, region: Region | None, *, native: bool) -> ThreadState:
    """Return what is known of a thread beside its stack, given the state of its stack."""
    has_gil = None if one.look.gil is None else one.look.gil == one.number
    waits = settled == _GIL if region is not None else None
    if native and settled in ("", _FUTEX):
        # Native frames are of the same moment as the stack: they say it better.
        return ThreadState(on_cpu=None, has_gil=has_gil)
    if settled == _ON_CPU:
        return ThreadState(on_cpu=True, has_gil=has_gil, waits_for_gil=waits)
    call = _FUTEX if settled == _GIL else settled
    return ThreadState(on_cpu=False, call=call, has_gil=False, waits_for_gil=waits)


def _stacks(line: StackLine, ids: dict[tuple[SampledFrame, ...], int]) -> tuple[Integers, Integers]:
    numbers = [ids.setdefault(stack, len(ids)) if stack else -1 for stack in line.stacks]
    return np.array(line.times_ns, dtype=np.int64), np.array(numbers, dtype=np.int64)


def _states(
    number: int, looks: Sequence[KernelLook], kind: Callable[[KernelState], int]
) -> tuple[Integers, Integers]:
    mine = [(look.time_ns, kind(look.states[number])) for look in looks if number in look.states]
    table = np.array(mine, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _thread(
    line: StackLine, begun_ns: int, end_ns: int, pid: int, cpu_ns: Mapping[int, int]
) -> SampledThread:
    last = line.times_ns[-1]
    ended = not line.stacks[-1] and last < end_ns - _STILL_THERE_NS
    return SampledThread(
        number=line.number,
        ident=line.ident,
        name=line.name,
        is_main=line.number == pid,
        start_ns=line.times_ns[0] - begun_ns,
        end_ns=last - begun_ns if ended else 0,
        cpu_ns=cpu_ns.get(line.number, 0),
    )
