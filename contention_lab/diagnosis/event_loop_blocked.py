"""Finding `event-loop-blocked`: one callback keeps the event loop while others are ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import lock_waits
from contention_lab.analysis.loop_steps import LoopSteps, loop_steps
from contention_lab.analysis.sums import summed
from contention_lab.diagnosis.coordination_parties import places
from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_BLOCKED_SHARE,
    LEAST_WAIT_S,
    LONG_STEP_S,
    MOSTLY,
    NEARLY_ALWAYS,
)
from contention_lab.diagnosis.wording import duration, names, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock, Party

KIND: Final = "event-loop-blocked"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each event loop it is true of.

    It is true if, for a tenth of the run or more, callbacks or steps of tasks that take 5 ms or
    longer each keep the loop while others are ready: callbacks that were so before, or timers that
    became due. What is long and delays nobody is left out, and so is the time that a step waits for
    a CPU, from the run, too: neither would take it on a machine of its own. The culprit is the code
    that was seen in these steps, or, where no sample was taken in them, where their tasks stood
    afterwards; but if the loop's thread spends them waiting for a lock, it is whoever holds that.

    Severity is that share of the run.
    """
    for thread in np.unique(file.trace.steps["thread"]).tolist():
        found = _of(file, loop_steps(file.trace, thread))
        if found is not None:
            yield found


def busy_share(file: CaseFile) -> float:
    """Return the share of the run that a loop's thread is on the CPU, or in long steps."""
    threads = file.trace.threads.values()
    native = {thread.native_id for thread in threads if thread.is_task}
    hosts = [time for time in file.times if time.thread.native_id in native]
    hosts = [time for time in hosts if not time.thread.is_task]
    running_s = max((time.cpu_s for time in hosts), default=0.0)
    blocked_s = max(
        (loop_steps(file.trace, time.thread.id).windows.total_ns / 1e9 for time in hosts),
        default=0.0,
    )
    wall_s = file.program.wall_s
    return max(running_s, blocked_s) / wall_s if wall_s else 0.0


def _of(file: CaseFile, steps: LoopSteps) -> Finding | None:
    wall_s = file.program.wall_s
    delaying = steps.where(steps.ready > 0)
    own_share = _own_share(file, delaying)
    long = delaying.where(delaying.length_ns * own_share >= LONG_STEP_S * 1e9)
    blocked_s = long.windows.total_ns * own_share / 1e9
    own_wall_s = wall_s - (long.windows.total_ns / 1e9 - blocked_s)
    if not wall_s or blocked_s < LEAST_WAIT_S or blocked_s < LEAST_BLOCKED_SHARE * own_wall_s:
        return None
    share = blocked_s / own_wall_s
    severity = min(share, LARGEST_SEVERITY)
    trace, windows = file.trace, long.windows
    held = _held_by_others(file, long)
    if held is not None:
        victims, culprits = held.victims, held.culprits
    else:
        seen = file.activity.stacks((long.thread,), windows, waiting=True)
        culprits = places(trace, seen or summed(long.stack, long.length_ns), blocked_s)
        victims = places(trace, summed(long.victim_stack, long.length_ns), blocked_s)
    running_share = _running_share(file, long)
    usual_s = float(np.median(long.length_ns)) / 1e9 * own_share
    runs = f"{'computes' if running_share >= MOSTLY else 'blocks'} in the event loop"
    advice = "do it in a thread (`asyncio.to_thread`), or await something that does not block"
    if held is not None:
        runs = f"holds {_lock_of(held)} that the loop's thread waits for"
        advice = "hold it only briefly, or wait for it in a thread"
    ready = max(1, round(float(np.mean(long.ready))))
    others = f"{ready} other{' is' if ready == 1 else 's are'}"
    where = place(culprits[0].site) if culprits else "a callback"
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{where} {runs}, {duration(usual_s)} at a time, for "
            f"{percent(share)} of the run{_without_delay(own_share)}, while {others} ready to go on"
            f"{f' ({names(victims, most=2)})' if victims and held is None else ''}: {advice}."
        ),
        lock=held.lock if held is not None else None,
        victims=victims,
        culprits=culprits,
        evidence={
            "blocked_s": blocked_s,
            "steps": len(long.start_ns),
            "usual_step_s": usual_s,
            "longest_step_s": float(long.length_ns.max(initial=0)) / 1e9,
            "average_ready": float(np.mean(long.ready)),
            "running_share": running_share,
            "own_share": own_share,
        },
        remedies=_remedies(victims, culprits, held, 1.0 / (1.0 - severity)),
    )


def _without_delay(own_share: float) -> str:
    """Return what shares and times leave out, where it is a good part of the steps."""
    return "" if own_share >= NEARLY_ALWAYS else " (without waiting for a CPU)"


def _remedies(
    victims: tuple[Party, ...], culprits: tuple[Party, ...], held: Held | None, high: float
) -> tuple[Remedy, ...]:
    to_thread = "by way of `await asyncio.to_thread(...)`"
    if held is None:
        text = (
            f"Call {names(culprits, most=1)} {to_thread}, or of a process pool if it is Python "
            "that computes."
        )
        return (Remedy("to-thread", text, None, 1.0, high),)
    lock = f"`{held.lock.name}`" if held.lock else "the lock"
    shorter = f"Let {names(culprits, most=1)} hold {lock} only to store or fetch the result."
    text = f"Call what takes {lock} in {names(victims, most=1)} {to_thread}: threads may wait."
    return (
        Remedy("narrow", shorter, None, 1.0, high),
        Remedy("to-thread", text, None, 1.0, high),
    )


def _lock_of(held: Held) -> str:
    return f"`{held.lock.name}`, a lock" if held.lock else "a lock"


def _own_share(file: CaseFile, steps: LoopSteps) -> float:
    """Return the share of the time of steps that is not waiting for a CPU."""
    on_cpu = file.activity.on_cpu_share(steps.thread)
    return 1.0 if on_cpu is None else 1.0 - _running_share(file, steps) * (1.0 - on_cpu)


def _running_share(file: CaseFile, steps: LoopSteps) -> float:
    """Return the share of the time of steps that the thread runs, or wants to."""
    whole_ns = steps.windows.total_ns
    busy_ns = file.activity.busy_ns(steps.thread, steps.windows)
    running = file.activity.doing((steps.thread,), steps.windows).running
    return running * busy_ns / whole_ns if whole_ns else 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that another thread holds while the loop's thread waits for it.

    Attributes
    ----------
    lock
        The one waited for most, if it is known.
    victims, culprits
        Where the loop's thread waited, and what the holders did.
    """

    lock: AccusedLock | None
    victims: tuple[Party, ...]
    culprits: tuple[Party, ...]


def _held_by_others(file: CaseFile, long: LoopSteps) -> Held | None:
    """Return where the loop waited for a lock and what its holder did, if that was most of it."""
    waits = lock_waits(file.trace)
    mine = waits.where(waits.thread == long.thread)
    covered = long.windows.covered_ns(mine.start_ns, mine.end_ns)
    if covered.sum() < MOSTLY * long.windows.total_ns:
        return None
    columns = file.trace.wait_columns
    waited_s = float(covered.sum()) / 1e9
    seen = summed(columns["holder_stack"][mine.index], covered)
    locks = summed(mine.lock, covered)
    return Held(
        file.locks.get(max(locks, key=lambda lock: locks[lock])),
        places(file.trace, summed(columns["stack"][mine.index], covered), waited_s),
        places(file.trace, seen, waited_s),
    )
