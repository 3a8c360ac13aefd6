"""What stacks of native code say about locks: no source is read, so functions' names have to do.

A lock is known by the function that takes it, `spin_lock` say, and whoever calls that function may
have it: before the call, for the rest of its own code, after it. So of a thread that runs within
such a caller it is possible that it has the lock. `Holders` then judges whether the name can mean
one lock at all: hardly ever may two threads seem to have it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from contention_lab.importing.exclusive_code import exclusive_code
from contention_lab.sampling import native_symbols as native
from contention_lab.sampling.classes import Activity, ThreadState, classify
from contention_lab.sampling.critical_sections import LockName
from contention_lab.sampling.stack_locks import NamedLock, StackLocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contention_lab.sampling.frame import SampledFrame
    from contention_lab.sampling.sample import Sample
    from contention_lab.sampling.sources import Sources

_Place = tuple[str, str]
"""A function and the file it is in."""

ON_CPU: Final = ThreadState(on_cpu=True)
TAKING: Final = (native.SPIN_LOCK, native.MUTEX, native.SLOW_PATH)


class NativeStackLocks(StackLocks):
    """What stacks say about locks, where native code takes them, too.

    Parameters
    ----------
    sources
        The sources of Python code.
    stacks
        All stacks there are: they show who takes which lock.
    """

    def __init__(self, sources: Sources, stacks: Iterable[tuple[SampledFrame, ...]]) -> None:
        super().__init__(sources)
        self._takers: dict[_Place, set[NamedLock]] = defaultdict(set)
        self._within: dict[tuple[SampledFrame, ...], tuple[NamedLock, ...]] = {}
        for stack in set(stacks):
            end = _acquire_end(stack)
            if end and end < len(stack):
                self._takers[_place(stack[end])].add(_named(stack[end - 1]))

    def learn(self, samples: Sequence[Sample], threads: int) -> None:
        """Learn from samples of all threads at the same moments what else runs under locks."""
        spinning = {
            stack: lock
            for stack in {sample.frames for sample in samples}
            if _acquire_end(stack)
            and classify(stack, ON_CPU) is Activity.SPINS
            and (lock := self.awaited(stack)) is not None
        }
        places = {
            sample.frames: frozenset(map(_place, sample.frames))
            for sample in samples
            if sample.frames not in spinning
        }
        for lock in sorted({*spinning.values()}, key=lambda one: (one.file, one.name.name)):
            moments: dict[int, dict[int, frozenset[_Place] | None]] = defaultdict(dict)
            for sample in samples:
                spins = spinning.get(sample.frames) == lock
                seen = None if spins else places.get(sample.frames, frozenset())
                moments[sample.time_ns][sample.thread] = seen
            for place in exclusive_code([*moments.values()], threads):
                self._takers[place].add(lock)

    def under(self) -> dict[str, list[list[str]]]:
        """Return, by the name of each lock, the functions that may have it, with their files."""
        found: dict[str, list[list[str]]] = defaultdict(list)
        for place, locks in sorted(self._takers.items()):
            for lock in locks:
                found[lock.name.label].append([*place])
        return dict(found)

    def awaited(self, frames: tuple[SampledFrame, ...]) -> NamedLock | None:
        """Return the lock that a thread which waits at such a stack waits for."""
        end = _acquire_end(frames)
        return _named(frames[end - 1]) if end and _is_native(frames) else super().awaited(frames)

    def held(self, frames: tuple[SampledFrame, ...]) -> tuple[NamedLock, ...]:
        """Return the locks that the code of a stack may have, the innermost first."""
        if not _is_native(frames):
            return super().held(frames)
        if frames not in self._within:
            found = (lock for frame in frames for lock in self._takers.get(_place(frame), ()))
            self._within[frames] = tuple(dict.fromkeys(found))
        return self._within[frames]

    def taken_from(self, frames: tuple[SampledFrame, ...]) -> tuple[SampledFrame, ...]:
        """Return a stack from the function on that takes a lock, if it ends in that."""
        end = _acquire_end(frames)
        return frames[end:] if end < len(frames) else frames


def _acquire_end(frames: tuple[SampledFrame, ...]) -> int:
    """Return how many frames, from the innermost, are a lock's own; 0 if none are."""
    end = 0
    for at, frame in enumerate(frames):
        symbol = native.plain(frame.function)
        if any(pattern.search(symbol) for pattern in TAKING):
            end = at + 1
        elif not (native.PARKED.search(symbol) or native.NEUTRAL.search(symbol)):
            break
    return end


def _named(frame: SampledFrame) -> NamedLock:
    return NamedLock(frame.image, LockName("", native.plain(frame.function)))


def _place(frame: SampledFrame) -> _Place:
    return native.plain(frame.function), frame.image


def _is_native(frames: tuple[SampledFrame, ...]) -> bool:
    return all(frame.is_native for frame in frames)
