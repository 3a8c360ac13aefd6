"""Lock order: which locks are taken while which others are held, and orders that contradict.

Two threads that take two locks in opposite orders can wait for each other for ever, on a day when
they meet. What a recording has seen of the orders tells without their meeting (Goodlock: Havelund,
"Using runtime analysis to guide model checking of Java programs", 2000): a ring of locks in which
each was held while the next one was taken,

- by a different thread for each step: a thread does not get into its own way;
- with nothing else held in common by two of these steps: a lock that is taken around both orders
  lets only one of them happen at a time.

A lock that one thread acquires and another releases is a signal, and left out: who "holds" it has
no say in when it is free.

It looks at single locks, not at the places where they are made: objects locked in the order of
their numbers, or a tree locked from the root, make no ring however many are locked.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.trace import OrderFlag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from contention_lab.trace import Frame, Records, Trace

SEEN: Final = 8
"""Different ways in which one lock was taken under another that are kept: by thread and by what
else was held. A ring that needs the ninth is not found."""
LONGEST: Final = 5
"""Locks in a ring, at most: real ones are of two or three."""
STEPS: Final = 1_000
"""Steps in each knot of locks from which a way back is looked for."""
REACHED: Final = 2_000
"""Locks reached from one step at which the search for a way back ends."""


@dataclass(frozen=True, slots=True)
class Step:
    """A thread took a lock while it held another.

    Attributes
    ----------
    thread
        Which thread.
    held, taken
        Ids of the locks.
    guards
        All locks it held.
    held_site
        The frame that had acquired the lock that was held.
    stack
        The stack that took the other one, innermost first.
    time_ns
        When that was first seen.
    has_timeout
        It would have given up after some time.
    """

    thread: int
    held: int
    taken: int
    guards: frozenset[int]
    held_site: Frame | None
    stack: tuple[Frame, ...]
    time_ns: int
    has_timeout: bool


@dataclass(frozen=True, slots=True)
class Inversion:
    """Orders that contradict each other.

    Attributes
    ----------
    steps
        Each takes what the next one holds, the last what the first one holds.
    """

    steps: tuple[Step, ...]


def inversions(trace: Trace) -> tuple[Inversion, ...]:
    """Return the rings of locks in which threads can wait for each other for ever.

    Of rings through the same places one is returned.
    """
    found: dict[frozenset[tuple[tuple[Frame | None, str], ...]], Inversion] = {}
    orders = _of_mutexes(trace.orders)
    for knot in _knots(orders):
        ways = _ways(trace, knot, orders)
        for ring in _rings(ways):
            places = frozenset(_place(trace, ways[edge][0]) for edge in ring)
            if places in found:
                continue
            steps = _chosen([ways[edge] for edge in ring], ())
            if steps:
                found[places] = Inversion(steps)
    return tuple(sorted(found.values(), key=lambda one: max(step.time_ns for step in one.steps)))


def _place(trace: Trace, step: Step) -> tuple[tuple[Frame | None, str], ...]:
    """Return by what a step is the same as another one: where its locks were made, as what."""
    locks = (trace.lock(lock) for lock in (step.held, step.taken))
    return tuple((lock.site, lock.label if lock.site else "") for lock in locks)


def signals(orders: Records) -> npt.NDArray[np.uint32]:
    """Return the locks that were released by a thread that had not acquired them."""
    found: npt.NDArray[np.uint32] = orders["lock"][orders["flags"] & int(OrderFlag.SIGNAL) != 0]
    return found


def _of_mutexes(orders: Records) -> Records:
    """Return the records that are about no signal."""
    left_out = [0, *signals(orders).tolist()]
    return orders[~np.isin(orders["held"], left_out) & ~np.isin(orders["lock"], left_out)]


def _knots(orders: Records) -> Iterator[Records]:
    """Yield the records between locks that each can be reached from the other."""
    if not len(orders):
        return
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ids, place = np.unique(np.concatenate([orders["held"], orders["lock"]]), return_inverse=True)
    held, taken = place[: len(orders)], place[len(orders) :]
    graph = coo_array((np.ones(len(held)), (held, taken)), shape=(len(ids), len(ids)))
    _, knot = connected_components(graph, directed=True, connection="strong")
    inside = (knot[held] == knot[taken]) & (held != taken)
    for number in np.unique(knot[held[inside]]):
        yield orders[inside & (knot[held] == number)]


def _ways(trace: Trace, orders: Records, whole: Records) -> dict[tuple[int, int], list[Step]]:
    """Return, for each lock taken under another, the different ways in which that was done."""
    held: dict[tuple[int, int], set[int]] = defaultdict(set)
    columns = (whole[name].tolist() for name in ("thread", "group", "held"))
    wanted = set(zip(orders["thread"].tolist(), orders["group"].tolist(), strict=True))
    for thread, group, lock in zip(*columns, strict=True):
        if (thread, group) in wanted:
            held[thread, group].add(lock)
    ways: dict[tuple[int, int], dict[tuple[int, frozenset[int]], Step]] = defaultdict(dict)
    names = ("thread", "group", "held", "lock", "held_site", "stack", "time_ns", "flags")
    for thread, group, lock, taken, site, stack, time_ns, flags in orders[list(names)].tolist():
        guards = frozenset(held[thread, group])
        known = ways[lock, taken]
        if (thread, guards) not in known and len(known) < SEEN:
            known[thread, guards] = Step(
                thread,
                lock,
                taken,
                guards,
                trace.frames.get(site),
                trace.stack(stack),
                time_ns,
                bool(flags & OrderFlag.TIMEOUT_GIVEN),
            )
    return {edge: [*known.values()] for edge, known in ways.items()}


def _rings(ways: Mapping[tuple[int, int], Sequence[Step]]) -> Iterator[list[tuple[int, int]]]:
    """Yield rings of locks as their steps: those of two, then a shortest through each step."""
    for held, taken in ways:
        if held < taken and (taken, held) in ways:
            yield [(held, taken), (taken, held)]
    after: dict[int, list[int]] = defaultdict(list)
    for held, taken in sorted(ways):
        after[held].append(taken)
    done = set()
    longer = [edge for edge in sorted(ways) if edge[::-1] not in ways]
    for held, taken in longer[:STEPS]:
        ring = _way_back(after, taken, held)
        if ring and frozenset(ring) not in done:
            done.add(frozenset(ring))
            yield [*zip(ring, [*ring[1:], ring[0]], strict=True)]


def _way_back(after: Mapping[int, Sequence[int]], start: int, goal: int) -> list[int]:
    """Return the goal and the locks on a shortest way to it from the start; empty if none."""
    before: dict[int, int] = {start: goal}
    level = [start]
    for _ in range(LONGEST - 1):
        level = [
            following
            for lock in level
            for following in after[lock]
            if before.setdefault(following, lock) == lock
        ]
        if goal in before or not level or len(before) > REACHED:
            break
    if goal not in before:
        return []
    back = [goal]
    while back[-1] != start:
        back.append(before[back[-1]])
    return [goal, *back[:0:-1]]


def _chosen(ways: Sequence[Sequence[Step]], before: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return one way for each step, so that they can all happen at once; empty if they cannot."""
    if not ways:
        return before
    for step in ways[0]:
        if all(step.thread != other.thread and not step.guards & other.guards for other in before):
            chosen = _chosen(ways[1:], (*before, step))
            if chosen:
                return chosen
    return ()
