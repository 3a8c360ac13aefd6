"""From a stack to locks: which one a thread waits for, and which ones its code holds.

Both are read from the source of the lines that the stack is at. What is known is what the source
calls a lock, so that two objects of one class share a name; whether they are one lock, `holders.py`
has to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contention_lab.sampling import library_waits as library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.sampling.critical_sections import LockName, Making
    from contention_lab.sampling.frame import SampledFrame
    from contention_lab.sampling.sources import Sources

_ENTRANCES: Final = frozenset({"acquire", "__enter__", "lock", "try_acquire", "acquire_lock"})
_ONE_MUTEX: Final = frozenset({"not_empty", "not_full", "all_tasks_done"})


@dataclass(frozen=True, slots=True)
class NamedLock:
    """A lock as the source of a file calls it.

    Attributes
    ----------
    file
        The file.
    name
        What it is called there.
    has_permits
        It is a semaphore: several may have it.
    """

    file: str
    name: LockName
    has_permits: bool = False


class StackLocks:
    """What stacks say about locks.

    Parameters
    ----------
    sources
        The program's source files.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._awaited: dict[tuple[SampledFrame, ...], NamedLock | None] = {}
        self._held: dict[tuple[SampledFrame, ...], tuple[NamedLock, ...]] = {}

    def awaited(self, frames: tuple[SampledFrame, ...]) -> NamedLock | None:
        """Return the lock that a thread which waits at such a stack waits for; None: not known."""
        if frames not in self._awaited:
            self._awaited[frames] = self._find_awaited(frames)
        return self._awaited[frames]

    def held(self, frames: tuple[SampledFrame, ...]) -> tuple[NamedLock, ...]:
        """Return the locks that the code of a stack holds, the innermost first.

        None of a thread that waits on a condition, which lets go of a lock meanwhile.
        """
        if frames not in self._held:
            self._held[frames] = self._find_held(frames)
        return self._held[frames]

    def taken_from(self, frames: tuple[SampledFrame, ...]) -> tuple[SampledFrame, ...]:
        """Return a native stack from the function on that takes a lock, if it ends in that."""
        return frames

    def made(self, lock: NamedLock) -> Making | None:
        """Return where a lock is made; None where the file does not say, or says it twice."""
        made = self._sources.locks(lock.file).made.get(lock.name, [])
        return made[0] if len(made) == 1 else None

    def asked(self, frames: Sequence[SampledFrame]) -> NamedLock | None:
        """Return what a thread which coordinates asks for something; None: not known."""
        for frame in _python(frames):
            if not library.coordinates(frame) and not library.is_entrance(frame):
                name = self._sources.locks(frame.file).asked_at(frame.line)
                return None if name is None else NamedLock(frame.file, name)
        return None

    def _find_awaited(self, frames: Sequence[SampledFrame]) -> NamedLock | None:
        best: NamedLock | None = None
        permits = False
        for frame in _python(frames):
            permits = permits or library.awaits_permit(frame)
            locks = self._sources.locks(frame.file)
            name = locks.taken_at(frame.line)
            reacquires = best is None and locks.asked_at(frame.line)
            if name is None and reacquires and not library.coordinates(frame):
                return NamedLock(frame.file, reacquires)
            passes = library.is_entrance(frame) or library.awaits_permit(frame)
            passes = passes or library.coordinates(frame)
            if name is None:
                if passes:
                    continue
                return best
            if not (passes and permits):
                best = NamedLock(frame.file, _one(name, frame), permits)
            if not passes and frame.name not in _ENTRANCES:
                return best
        return best

    def _find_held(self, frames: Sequence[SampledFrame]) -> tuple[NamedLock, ...]:
        python = _python(frames)
        if any(library.lets_go(frame) for frame in python):
            return ()
        found = [
            NamedLock(frame.file, _one(name, frame))
            for frame in python
            for name in self._sources.locks(frame.file).held_at(frame.line)
        ]
        return tuple(dict.fromkeys(found))


def _python(frames: Sequence[SampledFrame]) -> list[SampledFrame]:
    return [frame for frame in frames if not frame.is_native]


def _one(name: LockName, frame: SampledFrame) -> LockName:
    """Return the mutex that the conditions of a queue of the library share."""
    if name.scope == "Queue" and name.name in _ONE_MUTEX and frame.file.endswith("/queue.py"):
        return type(name)("Queue", "mutex", name.fixed)
    return name
