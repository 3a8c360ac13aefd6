"""Running a simulation: in C, or by the reference in Python where the extension was not built.

Both give the same events in the same order; a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from contention_lab.simulate.outcome import Outcome
from contention_lab.simulate.packing import Results

if TYPE_CHECKING:
    from contention_lab.simulate.packing import Tables

try:
    from contention_lab.simulate import _engine
except ImportError:  # pragma: no cover - a build without a compiler
    NATIVE = False
else:
    NATIVE = True

Engine = Literal["native", "reference"]


def simulate(tables: Tables, engine: Engine | None = None) -> Outcome:
    """Simulate a program.

    Parameters
    ----------
    tables
        From `Program.tables`.
    engine
        Which engine; the native one by default, if it was built.

    Returns
    -------
    Outcome
        What happened after the warm-up.

    Raises
    ------
    ValueError
        If the tables contradict themselves.
    """
    return Outcome.of(results_of(tables, engine))


def results_of(tables: Tables, engine: Engine | None = None, keep_events: int = 0) -> Results:
    """Simulate a program, and return the engine's own tables.

    Parameters
    ----------
    tables, engine
        As for `simulate`.
    keep_events
        How many of the first events to return in `Results.events`.
    """
    results = Results.empty(tables, keep_events)
    if engine == "reference" or (engine is None and not NATIVE):
        from contention_lab.simulate.reference.run import run

        run(tables, results)
        return results
    _engine.run(
        tables.machine,
        tables.ops,
        tables.items,
        tables.queues,
        tables.locks,
        tables.costs,
        tables.threads,
        results.locks,
        results.threads,
        results.totals,
        results.responses,
        results.events,
    )
    return results
