"""Running a batch: its steps as the engine's tables, with as many threads and pieces as wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.simulate.batch.batch import BatchTime
from contention_lab.simulate.engine import simulate
from contention_lab.simulate.packing import EndReason
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.program import NO_OPS, Program, compute, serve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from contention_lab.simulate.batch.batch import Batch, Conditions
    from contention_lab.simulate.history import History
    from contention_lab.simulate.outcome import Outcome
    from contention_lab.simulate.program import Step

    Integers = NDArray[np.int64]
    _AllPieces: TypeAlias = tuple[list["_Pieces"], list["_Pieces"]]
    """Those of each member of the crew, and of each thread beside it."""

PIECES_PER_THREAD: Final = 16
"""Pieces of work for each simulated thread, so that the last ones to finish differ little."""
EVENTS_LIMIT: Final = 3_000_000
"""Engine events after which a simulation is broken off; its time is that of the work done so far,
in proportion."""
WAKES_PREEMPT_NS: Final = 0.75e6
"""A woken thread takes the core of one that has run for longer: the base slice of Linux' scheduler
(`sysctl_sched_base_slice` in kernel/sched/fair.c)."""


class StuckError(Exception):
    """The simulated threads wait for each other for ever."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Which part of a batch to run.

    Attributes
    ----------
    steps
        About how many steps of the crew to run; of more, pieces of work are chosen.
    random
        Draws the pieces with replacement; None takes them evenly, or all.
    seed
        Of the engine's draws.
    """

    steps: int
    random: np.random.Generator | None = None
    seed: int = 1


class Runner:
    """A batch, laid out for being run many times.

    Parameters
    ----------
    batch
        The work.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._place = {id_: number for number, id_ in enumerate(sorted(batch.kinds))}
        histories = (*batch.crew, *batch.others)
        self._starts = np.cumsum([0, *(len(one.ops) for one in histories)])
        self._steps = _with_places(histories, self._place)
        self._whole_ns = sum(float(one.spent_ns[-1]) for one in batch.crew) or 1.0

    def run(self, conditions: Conditions, draw: Draw) -> BatchTime:
        """Run the batch.

        Parameters
        ----------
        conditions
            Threads, cores, costs.
        draw
            Which part of it; the time is that of all of it, in proportion.

        Raises
        ------
        StuckError
            If its threads wait for each other for ever.
        """
        batch = self.batch
        pieces, scale = self._pieces(conditions.threads, draw)
        program, crew = self._program(conditions, pieces)
        machine = replace(
            conditions.calibration.machine_with(conditions.cores), preempt_after_ns=WAKES_PREEMPT_NS
        )
        found = simulate(program.tables(machine, seed=draw.seed, events_limit=EVENTS_LIMIT))
        if found.reason == EndReason.STUCK:
            raise StuckError(
                "the simulated threads wait for each other for ever, as they could in the program: "
                "locks are taken in different orders (`diagnose` says where)"
            )
        elapsed = _elapsed(found, batch, crew)
        if found.reason == EndReason.LIMIT:
            done = float(found.threads["run_ns"].sum())
            elapsed = found.elapsed_ns * max(1.0, _cpu_ns(batch, pieces) / max(done, 1.0))
        places = dict(enumerate(self._place))
        if conditions.gil and batch.gil:
            places[len(places)] = 0
        return BatchTime(
            elapsed * scale,
            {id_: found.utilisation(place) for place, id_ in places.items()},
            {id_: float(found.locks["wait_ns"][place]) * scale for place, id_ in places.items()},
            found.cores_at_work,
        )

    def _pieces(self, threads: int | None, draw: Draw) -> tuple[_AllPieces, float]:
        """Return pieces of each member's and each other thread's work, and what they stand for."""
        batch = self.batch
        steps = sum(len(one.ops) for one in batch.crew)
        share = min(1.0, draw.steps / max(1, steps))
        wanted = PIECES_PER_THREAD * (len(batch.crew) if threads is None else threads) / share
        per_ns = wanted / self._whole_ns
        crew = [_of_one(one, per_ns, share, draw.random) for one in batch.crew]
        others = [_of_one(one, per_ns, share, None) for one in batch.others]
        chosen = sum(one.spent_ns for one in crew)
        return (crew, others), batch.scale * (self._whole_ns / chosen if chosen > 0 else 1.0)

    def _program(self, conditions: Conditions, pieces: _AllPieces) -> tuple[Program, int]:
        """Return the program, and how many of its threads, the first ones, are the crew's."""
        batch, place = self.batch, self._place
        program = Program()
        made = {kind: kind.policy(conditions.calibration) for kind in set(batch.kinds.values())}
        for id_ in place:
            program.add_lock(made[batch.kinds[id_]])
        if conditions.gil and batch.gil:
            gil = POLICIES["gil"]
            program.add_gil(gil.lock(conditions.calibration.costs_of(gil)))
        program.add_ops(self._steps)
        crew, others = pieces
        own = conditions.threads is None and batch.each_its_own
        groups = [[number] for number in range(len(crew))] if own else [[*range(len(crew))]]
        threads = conditions.threads or batch.threads
        closing = [_placed(step, place) for step in batch.closing]
        hands = threads if batch.dealt and not own else 1
        for group in groups:
            chosen = [crew[number] for number in group]
            for hand in range(hands):
                dealt = slice(hand, None, hands)
                queue = _add(program, chosen, self._starts[group], closing, dealt)
                for _ in range(1 if own or hands > 1 else threads):
                    program.add_thread(queue)
        for number, other in enumerate(others, len(crew)):
            queue = _add(program, [other], self._starts[[number]], [], slice(None))
            program.add_thread(queue)
        for id_, needs_gil in batch.servers:
            steps = [serve(place[id_], needs_gil)]
            if batch.serving_ns > 0.0:
                steps.append(compute(batch.serving_ns, gil=True))
            program.add_thread(program.add_queue([steps], endless=True))
        return program, len(groups) if own else threads


def _elapsed(found: Outcome, batch: Batch, crew: int) -> float:
    if batch.awaits_others or found.reason == EndReason.LIMIT:
        return found.elapsed_ns
    return float(found.threads["end_ns"][:crew].max())


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of one thread's work: ranges of its steps, when it was done, how much was chosen."""

    start: Integers
    stop: Integers
    when: NDArray[np.float64]
    spent_ns: float


def _of_one(
    one: History, per_ns: float, share: float, random: np.random.Generator | None
) -> _Pieces:
    whole = float(one.spent_ns[-1])
    count = max(1, round(per_ns * whole))
    few = max(1, round(share * count))
    if random is not None:
        number = np.sort(random.integers(0, count, few))
    elif few < count:
        number = (np.arange(few) * count) // few
    else:
        number = np.arange(count)
    edges = np.stack([number, number + 1]) * (whole / count)
    place = np.searchsorted(one.spent_ns, edges * (1.0 - 1e-12)).clip(0, len(one.cuts) - 1)
    # A piece begins where the one before ends; the last takes in what takes no time.
    place[0] = np.where(number == 0, 0, place[0])
    place[1] = np.where(number == count - 1, len(one.cuts) - 1, place[1])
    some = place[1] > place[0]
    first, last = place[0][some], place[1][some]
    return _Pieces(
        one.cuts[first],
        one.cuts[last],
        one.spent_ns[first] / max(whole, 1.0),
        float((one.spent_ns[last] - one.spent_ns[first]).sum()),
    )


def _add(
    program: Program,
    pieces: Sequence[_Pieces],
    starts: Integers,
    closing: list[Step],
    dealt: slice,
) -> int:
    """Add pieces as a queue, in the order of time: those dealt out to it."""
    pairs = list(zip(pieces, starts.tolist(), strict=True))
    start = np.concatenate([one.start + at for one, at in pairs])
    stop = np.concatenate([one.stop + at for one, at in pairs])
    order = np.argsort(np.concatenate([one.when for one in pieces]), kind="stable")[dealt]
    first = program.add_ranges(start[order], stop[order])
    last = first + len(order)
    if closing:
        last = program.add_item(closing) + 1
    return program.add_queue_of(first, last)


def _with_places(histories: Sequence[History], place: dict[int, int]) -> NDArray[np.void]:
    steps = np.concatenate([*(one.ops for one in histories), NO_OPS])
    table = np.zeros(max(place, default=0) + 1, np.int32)
    table[[*place]] = [*place.values()]
    steps["target"] = table[steps["target"]]
    return steps


def _placed(step: Step, place: dict[int, int]) -> Step:
    return step._replace(target=place[step.target])


def _cpu_ns(batch: Batch, pieces: _AllPieces) -> float:
    """Return the CPU time of chosen pieces, those of all threads together."""
    total = 0.0
    for one, chosen in zip((*batch.crew, *batch.others), (*pieces[0], *pieces[1]), strict=True):
        until = np.concatenate([[0.0], np.cumsum(np.where(one.ops["code"] == 0, one.ops["ns"], 0))])
        total += float((until[chosen.stop] - until[chosen.start]).sum())
    return total
