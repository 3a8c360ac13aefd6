"""Finding `uncontended-overhead`: a lock that nobody waits for is taken so often that it costs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.lock_case import accused
from contention_lab.diagnosis.sampled_parties import held_at, seen_at, stack_samples
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_OVERHEAD,
    LEAST_OVERHEAD_S,
    MOST_CONTENDED,
)
from contention_lab.diagnosis.wording import duration, lock_and_origin, names, number, percent
from contention_lab.trace import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contention_lab.analysis import LockRow
    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Party

KIND: Final = "uncontended-overhead"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each lock (or all locks made at one place) that it is true of.

    It is true if all of these are:

    - next to none of the acquires had to wait;
    - acquires (of a re-entrant lock also those by a thread that has it already) times the cost of
      one, as the recorder measured it on this machine at the start of this recording, are a sixth
      of the process's CPU time or more. The cost is that of `with` on a free lock, without what
      recording it adds, so the share is rather too small.

    Severity is that time as a share of the wall time, or of the CPU time where several threads
    share it.
    """
    cost_ns = file.trace.meta.get("acquire_cost_ns")
    if not isinstance(cost_ns, int | float) or cost_ns <= 0 or not file.program.cpu_s:
        return
    groups: dict[tuple[Any, ...], list[LockRow]] = defaultdict(list)
    for row in file.rows:
        lock = row.lock
        groups[lock.type, lock.label, lock.site].append(row)
    for rows in groups.values():
        finding = _of_rows(file, rows, float(cost_ns))
        if finding is not None:
            yield finding


def _of_rows(file: CaseFile, rows: Sequence[LockRow], cost_ns: float) -> Finding | None:
    acquires = sum(row.acquires for row in rows)
    contended = sum(row.contended + row.failed_tries for row in rows)
    again = _recursions(file, rows)
    cost_s = (acquires + again) * cost_ns / 1e9
    cpu_s = file.program.cpu_s
    if (
        cost_s < max(LEAST_OVERHEAD_S, LEAST_OVERHEAD * cpu_s)
        or contended > MOST_CONTENDED * acquires
    ):
        return None
    lock, times = accused(rows[0], len(rows)), f"{acquires + again:,} times"
    severity = min(cost_s / max(file.program.wall_s, cpu_s), LARGEST_SEVERITY)
    places = _places(file, rows, cost_s)
    where = f" in {names(places, most=2)}" if places else ""
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"Nobody waits for {lock_and_origin(lock)}, but taking it {times}{where} costs "
            f"{duration(cost_s)}, {percent(cost_s / cpu_s)} of the CPU time "
            f"({number(cost_ns)} ns each)."
        ),
        lock=lock,
        victims=places,
        culprits=places,
        evidence={
            "acquires": acquires,
            "contended": contended,
            **({"recursions": again} if again else {}),
            "acquire_cost_ns": cost_ns,
            "overhead_cpu_s": cost_s,
            "overhead_of_cpu": cost_s / cpu_s,
        },
        remedies=(
            Remedy(
                "take-less-often",
                "Take it once for many steps (a batch, a local sum that is added at the end), or "
                "leave it out where one thread owns the data.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )


def _places(file: CaseFile, rows: Sequence[LockRow], cost_s: float) -> tuple[Party, ...]:
    """Return where it is taken; as far as no such hold is recorded, where its users were seen."""
    ids = [row.lock.id for row in rows]
    taken = held_at(file.trace, ids, cost_s)
    if taken:
        return taken
    counters = file.trace.counters
    mine = np.isin(counters["lock"], ids) & (counters["acquires"] > 0)
    users = np.unique(counters["thread"][mine]).tolist()
    samples = stack_samples(file.trace)
    return seen_at(file.trace, samples, samples["state"] == State.RUNNABLE, cost_s, users)


def _recursions(file: CaseFile, rows: Sequence[LockRow]) -> int:
    """Return how often a thread took one of the locks that it had already."""
    counters = file.trace.counters
    mine = np.isin(counters["lock"], [row.lock.id for row in rows])
    return int(counters["recursions"][mine].sum())
