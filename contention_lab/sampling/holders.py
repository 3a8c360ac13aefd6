"""Who has a lock that threads wait for, as far as samples of all threads at one moment show it.

The evidence: another thread is, at that moment, within the code that runs while the lock is held.
It counts only where that is enough to tell: exactly one thread is there, hardly ever are two
(else there are several locks of that name, or it is no lock that excludes), and those who wait all
sleep on one word. Otherwise nobody is named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contention_lab.sampling.stack_locks import NamedLock

MOST_TOGETHER: Final = 0.02
"""Share of the moments at which two threads may seem to be within one lock's code: a stack may be
read a moment later than another."""
MOST_HANDED_OVER: Final = 0.3
"""The same where the words that threads sleep on show that it is one lock: then two threads within
its code are one that leaves and one that enters."""
FEWEST_TOGETHER: Final = 20
"""Moments at which two threads must have been seen to wait for one word, for that to be shown."""
MOST_OTHER_WORDS: Final = 0.1
"""Share of the moments at which the word that is waited for may be another one than before, or
two: a word may be read a moment later than the stack, and one lock may come after another."""


@dataclass(slots=True)
class Look:
    """All threads at one moment.

    Attributes
    ----------
    awaited
        By thread: the lock it waits for.
    held
        By thread: the locks whose code it is in.
    words
        By thread that waits: the address of the word that it sleeps on, where known.
    """

    awaited: dict[int, NamedLock] = field(default_factory=dict)
    held: dict[int, tuple[NamedLock, ...]] = field(default_factory=dict)
    words: dict[int, int] = field(default_factory=dict)

    def within(self) -> Mapping[NamedLock, list[int]]:
        """Return the threads within each lock's code, those that wait for it left out."""
        found: dict[NamedLock, list[int]] = defaultdict(list)
        for thread, locks in self.held.items():
            for lock in locks:
                if self.awaited.get(thread) != lock:
                    found[lock].append(thread)
        return found


class Holders:
    """What all looks together say about who has which lock.

    Parameters
    ----------
    looks
        All of them, in the order of time.
    """

    def __init__(self, looks: Iterable[Look]) -> None:
        within: Counter[NamedLock] = Counter()
        together: Counter[NamedLock] = Counter()
        self._moments: Counter[NamedLock] = Counter()
        self._others: Counter[NamedLock] = Counter()
        shown: Counter[NamedLock] = Counter()
        last: dict[NamedLock, int] = {}
        for look in looks:
            for lock, threads in look.within().items():
                within[lock] += 1
                together[lock] += len(threads) > 1
            words: dict[NamedLock, Counter[int]] = defaultdict(Counter)
            for thread, word in look.words.items():
                if word and thread in look.awaited:
                    words[look.awaited[thread]][word] += 1
            for lock, counts in words.items():
                word, _ = counts.most_common(1)[0]
                changed = len(counts) > 1 or last.get(lock, word) not in counts
                shown[lock] += counts[word] > 1
                self._moments[lock] += 1
                self._others[lock] += changed
                last[lock] = word
        self._excludes = {
            lock
            for lock, count in within.items()
            if self.is_one(lock)
            and together[lock]
            <= count * (MOST_HANDED_OVER if shown[lock] >= FEWEST_TOGETHER else MOST_TOGETHER)
        }

    def is_one(self, lock: NamedLock) -> bool:
        """Tell whether a name means one lock at a time, as far as is known."""
        if not lock.name.fixed or lock.has_permits:
            return False
        return self._others[lock] <= MOST_OTHER_WORDS * self._moments[lock]

    def holder(self, look: Look, lock: NamedLock) -> int | None:
        """Return the thread that has a lock at one moment; None where that cannot be told."""
        if lock not in self._excludes:
            return None
        within = look.within().get(lock, [])
        return within[0] if len(within) == 1 else None
