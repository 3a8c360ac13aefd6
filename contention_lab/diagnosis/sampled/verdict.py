"""From a trace of samples to a diagnosis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.diagnosis.finding import SAMPLES, Diagnosis
from contention_lab.diagnosis.ranking import ranked, verdict
from contention_lab.diagnosis.sampled import busy, flow, locks, native_spinning, rings
from contention_lab.diagnosis.sampled.facts import Facts
from contention_lab.diagnosis.thresholds import LEAST_UNKNOWN_SLEEP
from contention_lab.diagnosis.wording import brief, counted, duration
from contention_lab.trace import Doing, not_seen

if TYPE_CHECKING:
    from contention_lab.diagnosis.finding import Finding
    from contention_lab.trace import Trace


def diagnose_samples(trace: Trace) -> Diagnosis:
    """Return what samples say limits a program; the same for the same trace."""
    facts = Facts(trace)
    waited = locks.waited_for(facts) if facts.together else ()
    spinning = native_spinning.find if native_spinning.is_native(facts) else busy.spin_collapse
    found: list[Finding] = [*rings.find(facts), *spinning(facts)]
    if facts.together:
        found += [*locks.find(facts, waited), *flow.pool_self_starvation(facts)]
        found += [*flow.backpressure(facts), *flow.load_imbalance(facts)]
        found += [*busy.native_oversubscription(facts)]
        if not any(one.kind == "spin-collapse" for one in found):  # spinners are who wants it
            found += [*busy.gil_bound(facts)]
        found += [*flow.idle_wait(facts)]
    findings = ranked([replace(one, summary=brief(one.summary)) for one in found])
    kind = verdict(findings)
    first = next((finding for finding in findings if finding.kind == kind), None)
    return Diagnosis(
        verdict=kind,
        summary=first.summary if first else brief(_nothing(facts, waited)),
        findings=findings,
        totals=_totals(facts),
        python=_mapping(trace.meta.get("python")),
        machine=_mapping(trace.meta.get("machine")),
        problems=trace.problems,
        not_seen=(basis(facts), *not_seen(trace)),
        gil_source=SAMPLES if facts.does(Doing.HOLDS_GIL, Doing.AWAITS_GIL).any() else None,
    )


def basis(facts: Facts) -> str:
    """Return what the diagnosis rests on, as something that was not recorded."""
    source = str(facts.about.get("source") or "another profiler")
    interval = facts.about.get("interval_ns") if facts.pace_known else None
    pace = (
        f", one of each thread every {duration(interval / 1e9)}"
        if isinstance(interval, int | float) and interval > 0
        else ""
    )
    failed = facts.about.get("failed")
    lost = f", {counted(failed, 'look')} failed" if type(failed) is int and failed else ""
    what = (
        "waits shorter than that, and how often a lock was taken"
        if facts.together
        else "threads that sleep"
        if facts.about.get("on_cpu_only")
        else "what happened at the same time"
    )
    inferred = ", and who had a lock is inferred" if facts.together else ""
    if not facts.states_known:
        inferred = " of stacks alone, so that nobody knows who had a lock, or who ran and who slept"
    return f"{what}: these are {int(facts.count.sum()):,} samples by {source}{pace}{lost}{inferred}"


def _nothing(facts: Facts, waited: tuple[locks.WaitedFor, ...]) -> str:
    """Return what to say where there is no finding."""
    if not facts.moments:
        return "Nothing can be said: there are no samples."
    unknown = next((one for one in waited if not one.is_blamed), None)
    if unknown is not None:
        return (
            f"Nobody is accused: by samples, threads wait for `{unknown.lock.name}` "
            f"{unknown.moments} of the time, but who has it meanwhile cannot be told from outside: "
            "contention-lab record PROGRAM."
        )
    passed = next(iter(waited), None)
    if passed is not None:
        return (
            f"Nobody is accused: by samples, threads wait for `{passed.lock.name}` "
            f"{passed.moments} of the time, but who has it waits itself, and what for cannot be "
            "told from outside: contention-lab record PROGRAM."
        )
    if not facts.together and facts.does(Doing.AWAITS_LOCK, Doing.SPINS).any():
        every = np.ones(len(facts.doing), dtype=np.bool_)
        waits, spins = (
            facts.share_of(facts.does(one), every) for one in (Doing.AWAITS_LOCK, Doing.SPINS)
        )
        return (
            f"Nobody is accused: {waits} of the samples are of waits for locks, {spins} of "
            "spinning, but they are not of one moment, so who has the locks is not seen."
        )
    if not facts.together and facts.sees_sleep:
        return "No lock is seen to limit this program: none of its samples is of a wait for one."
    if not facts.states_known:
        return (
            "No lock is seen to limit this program: by samples, its threads wait for locks hardly "
            "ever; whether they run or sleep otherwise is not known on this system."
        )
    if not facts.together:
        return (
            "No lock is seen to limit this program: its samples show no spinning, and say nothing "
            "of threads that sleep."
        )
    asleep = facts.does(Doing.COORDINATES, Doing.IO, Doing.SLEEPS)
    every = np.ones(len(facts.doing), dtype=np.bool_)
    share = facts.share_of(asleep, every)
    sleeping = facts.share_of(facts.does(Doing.UNKNOWN), every)
    if sleeping.low >= LEAST_UNKNOWN_SLEEP:
        further = (
            "record PROGRAM tells more"
            if facts.about.get("native") is True
            else "attach --native may tell"
        )
        return (
            "No lock of Python is seen to limit this program: by samples, its threads sleep "
            f"{sleeping} of their time in code that does not say what for: {further}."
        )
    return (
        "No lock is seen to limit this program: by samples, its threads wait for locks hardly "
        f"ever, and {share} of their time for others, for input, or asleep."
    )


def _totals(facts: Facts) -> dict[str, float | int | None]:
    trace = facts.trace
    said = facts.about.get("gil_held")
    held = float(said) if isinstance(said, int | float) else None
    return {
        "wall_s": trace.duration_ns / 1e9,
        "cpu_s": sum(thread.cpu_ns for thread in trace.threads.values()) / 1e9,
        "threads": len(facts.threads(np.ones(len(facts.thread), dtype=np.bool_))),
        "lock_wait_s": facts.seconds(facts.does(Doing.AWAITS_LOCK, Doing.SPINS)),
        "spin_s": facts.seconds(facts.does(Doing.SPINS)),
        "gil_share": held,
        "gil_wait_s": 0.0,
        "gil_wait_total_s": facts.seconds(facts.does(Doing.AWAITS_GIL))
        if held is not None
        else None,
        "coordination_wait_s": facts.seconds(facts.does(Doing.COORDINATES)),
        "dropped": 0,
        "overhead_s": 0.0,
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
