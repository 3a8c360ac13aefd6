"""Batches made by hand, on a machine where nothing but the work takes time."""

from __future__ import annotations

import numpy as np

from contention_lab.simulate.batch import Batch, Conditions, LockKind
from contention_lab.simulate.batch.run import Draw, Runner
from contention_lab.simulate.batch.target import Site, Target, _held
from contention_lab.simulate.calibration import Calibration
from contention_lab.simulate.history import History, history_of
from contention_lab.simulate.lock_policy import NO_COSTS
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.packing import OPS
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.prediction.question import fixes
from contention_lab.simulate.program import Step, acquire, compute, release
from contention_lab.simulate.time_use import TimeUse

LOCK = 1
FREE = Calibration(
    host={"name": "none"},
    machine=Machine.ideal(1),
    transfer_ns=0.0,
    costs=dict.fromkeys(POLICIES, NO_COSTS),
    measured_at="never",
)
"""Locks and scheduler cost nothing."""


def member(thread: int, steps: list[Step]) -> History:
    ops = np.array([*steps], dtype=OPS)
    return history_of(thread, ops, np.full(len(ops), -1, np.int64), TimeUse(1.0, 0.0, 0.0))


def batch(*threads: list[Step], gil: bool = False) -> Batch:
    crew = tuple(member(number, steps) for number, steps in enumerate(threads))
    ids = {step.target for steps in threads for step in steps if step.target}
    return Batch(
        crew=crew,
        others=(),
        kinds={id_: LockKind("parking") for id_ in sorted(ids)},
        names={id_: f"lock {id_}" for id_ in ids},
        gil=gil,
        scale=1.0,
        threads=len(crew),
    )


def turns(count: int, think_ns: float, hold: list[Step]) -> list[Step]:
    return [compute(think_ns), acquire(LOCK), *hold, release(LOCK)] * count


def target(of: Batch, cores: int = 64) -> Target:
    site = Site("work", ("work.py:7",), 1.0, np.ones(1, np.bool_))
    return Target((LOCK,), "lock 1", "Lock", (site,), _held(of, (LOCK,)), "parking", cores)


def fixed(of: Batch, text: str, cores: int = 64) -> Batch:
    (fix,) = fixes(target(of, cores), [text])
    return fix.applied(of)


def time_ns(of: Batch, threads: int | None = None, cores: int = 64) -> float:
    return Runner(of).run(Conditions(threads, cores, FREE), Draw(10**9)).elapsed_ns
