"""What a sampled thread was doing, from its stack and what is known of its state.

A pure function of names: it reads no source and asks no system. Where the stack and the state do
not say it, the answer is `UNKNOWN`, never a guess at a lock.

The order of the evidence: that the thread is waiting for the GIL is known or not, whatever it was
called for. Native frames come next, since a wait ends in them. Then the Python function: the
standard library's are known, and of others the source line says what was asked for, since a C
function like `lock.acquire` has no frame of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from contention_lab.sampling import library_waits as library
from contention_lab.sampling import native_symbols as native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.sampling.frame import SampledFrame


class Activity(StrEnum):
    """What a thread was doing."""

    RUNNING = "running"
    HOLDS_GIL = "holds-gil"  # running, and it has the GIL
    AWAITS_GIL = "awaits-gil"
    AWAITS_LOCK = "awaits-lock"
    COORDINATES = "coordinates"  # waits for an item, an event, a condition, a thread
    IO = "io"  # blocked in a system call
    SLEEPS = "sleeps"  # for a time it chose
    SPINS = "spins"  # busy because a lock is taken
    UNKNOWN = "unknown"  # asleep, and nothing says what for; or not even that is known


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What is known of a sampled thread beside its stack.

    Attributes
    ----------
    on_cpu
        Whether it was on a CPU or waiting for one; None where that is not known.
    call
        The system call it was blocked in (`futex`, `read`), empty where not known.
    has_gil
        Whether it had the GIL, None where not known.
    waits_for_gil
        Whether it was waiting for the GIL, None where not known.
    is_known
        False: there is nothing but the stack, of a thread that may run or sleep.
    """

    on_cpu: bool | None = None
    call: str = ""
    has_gil: bool | None = None
    waits_for_gil: bool | None = None
    is_known: bool = True


UNKNOWN_STATE: Final = ThreadState()
STACK_ALONE: Final = ThreadState(is_known=False)

SLEEP_CALLS: Final = frozenset({"nanosleep", "clock_nanosleep", "pause"})
FUTEX_CALLS: Final = frozenset({"futex", "futex_wait", "futex_waitv"})


def classify(frames: Sequence[SampledFrame], state: ThreadState = UNKNOWN_STATE) -> Activity:
    """Return what a thread was doing.

    Parameters
    ----------
    frames
        Its stack, innermost first, native frames or not.
    state
        What else is known; a profiler that only shows threads on a CPU says so here.
    """
    inner, outer = split(frames)
    if state.waits_for_gil:
        return Activity.AWAITS_GIL
    found = _by_native(inner, outer, state)
    if found is not None:
        return found
    if state.on_cpu:
        return _busy(outer, state)
    if not state.is_known:
        return _purpose(outer, by_text=True) or Activity.UNKNOWN
    if state.on_cpu is None and not state.call:
        return _purpose(outer, by_text=False) or _busy(outer, state)
    if state.call in SLEEP_CALLS:
        return Activity.SLEEPS
    if state.call and state.call not in FUTEX_CALLS:
        return Activity.IO
    return _purpose(outer, by_text=True) or Activity.UNKNOWN


def split(
    frames: Sequence[SampledFrame],
) -> tuple[Sequence[SampledFrame], Sequence[SampledFrame]]:
    """Return the native frames that the innermost Python frame called, and the Python frames."""
    inner = []
    for frame in frames:
        if not frame.is_native or native.INTERPRETER.search(frame.function):
            break
        inner.append(frame)
    return inner, [frame for frame in frames if not frame.is_native]


def _by_native(
    inner: Sequence[SampledFrame], outer: Sequence[SampledFrame], state: ThreadState
) -> Activity | None:
    """Return what native frames say, None if they say nothing."""
    symbols = [native.plain(frame.function) for frame in inner]
    if any(native.GIL.search(symbol) for symbol in symbols):
        return Activity.AWAITS_GIL
    parked = False
    for at, symbol in enumerate(symbols):
        if native.SPIN_LOCK.search(symbol):
            return Activity.SPINS
        if state.on_cpu and native.SLOW_PATH.search(symbol):
            return Activity.SPINS
        if native.PYTHON_LOCK.search(symbol) or native.MUTEX.search(symbol):
            if state.on_cpu:
                return Activity.SPINS if parked else None
            asked = any(native.PYTHON_LOCK.search(other) for other in symbols[at:])
            return (_purpose(outer, by_text=False) if asked else None) or Activity.AWAITS_LOCK
        if not state.on_cpu:
            for pattern, activity in _ASLEEP:
                if pattern.search(symbol):
                    return activity
        if native.PARKED.search(symbol):
            parked = True
        elif not native.NEUTRAL.search(symbol):
            break
    return None


_ASLEEP: Final = (
    (native.COORDINATION, Activity.COORDINATES),
    (native.SLEEP, Activity.SLEEPS),
    (native.IO, Activity.IO),
)


def _busy(outer: Sequence[SampledFrame], state: ThreadState) -> Activity:
    """Return what a thread on a CPU does: its own work, or a loop that waits for a lock."""
    if outer and state.on_cpu:
        top = outer[0]
        tries = library.tries_without_blocking(top.text)
        if tries or (library.SPINNERS.search(top.name) and not library.is_entrance(top)):
            return Activity.SPINS
    return Activity.HOLDS_GIL if state.has_gil else Activity.RUNNING


def _purpose(outer: Sequence[SampledFrame], *, by_text: bool) -> Activity | None:
    """Return what the Python code of a thread that waits is waiting for, None if nothing says it.

    `by_text`: the source line of code that is not the standard library's may say it.
    """
    if not outer:
        return None
    top, *rest = outer
    if "_acquire_restore(" in top.text or library.is_entrance(top):
        return Activity.AWAITS_LOCK
    if library.awaits_permit(top):
        return Activity.AWAITS_LOCK
    if library.coordinates(top):
        for frame in rest:
            if library.awaits_permit(frame):
                return Activity.AWAITS_LOCK
            if not library.coordinates(frame):
                break
        return Activity.COORDINATES
    if by_text and library.ACQUIRING.search(top.text):
        return Activity.AWAITS_LOCK
    if by_text and library.AWAITING.search(top.text):
        return Activity.COORDINATES
    return None
