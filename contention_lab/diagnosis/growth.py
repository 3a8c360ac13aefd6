"""The verdict on a sweep: which lock, who holds it, who waits, and how the batch time grows.

It joins what a traced point says (a `Diagnosis`) with what only several points can say: how times
and holds grow with threads. It measures and fits nothing; points and fits are plain data, as in
`result.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contention_lab.diagnosis import serialised_by_lock, spin_collapse
from contention_lab.diagnosis.finding import HEALTHY, Diagnosis, Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LEAST_GROWTH,
    LEAST_HAND_OFF,
    MOSTLY,
    RETROGRADE,
    SAME,
)
from contention_lab.diagnosis.wording import (
    enumeration,
    gain_said,
    lock_and_origin,
    names,
    percent,
    seconds,
    times,
)

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import TypeAlias, TypeVar

    from contention_lab.scaling import ScalingFit

    Key = TypeVar("Key", bound=Hashable)
    Point: TypeAlias = Mapping[str, Any]
    Fits: TypeAlias = ScalingFit | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True)
class SweepVerdict:
    """What a sweep says.

    Attributes
    ----------
    kind
        As `Diagnosis.verdict`; of several variants, that of the slowest.
    summary
        The first line of the report.
    lines
        Evidence, then what to do next, one sentence each.
    """

    kind: str
    summary: str
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"kind": self.kind, "summary": self.summary, "lines": list(self.lines)}


def most_telling(diagnoses: Mapping[Key, Diagnosis]) -> Key | None:
    """Return the key of the diagnosis with the most severe finding, None without any.

    Parameters
    ----------
    diagnoses
        In the order of thread counts: of equals, the last is taken.
    """
    telling = None
    most = -1.0
    for key, diagnosis in diagnoses.items():
        severity = diagnosis.findings[0].severity if diagnosis.findings else 0.0
        if severity >= most:
            telling, most = key, severity
    return telling


def sweep_verdict(
    points: Sequence[Point],
    diagnosis: Diagnosis | Mapping[str, Diagnosis] | None,
    fit: Fits = None,
    *,
    threads: int | Mapping[str, int] | None = None,
    unit: str = "runs",
    cores: int | None = None,
) -> SweepVerdict:
    """Return the verdict on a sweep of one variant, or the comparison of several.

    Parameters
    ----------
    points
        As `points` of `result.json`: `variant`, `threads`, `work`, `wall_s`, `hold_s`.
    diagnosis
        Of the most telling traced point (see `most_telling`); with several variants, one for
        each by name. None where nothing was traced.
    fit
        The fitted law, as an object or as an element of `fits` of `result.json`; with several
        variants, one for each by name, or the whole list.
    threads
        Thread count of the diagnosed point, or one for each variant by name.
    unit
        What `work` counts, in the plural.
    cores
        Of the machine, where known.

    Raises
    ------
    ValueError
        Without points there is nothing to say.
    """
    if not points:
        raise ValueError("a sweep without points has no verdict; measure at least one")
    series = [
        _Series(
            variant,
            sorted(
                (point for point in points if point["variant"] == variant),
                key=lambda point: int(point["threads"]),
            ),
            diagnosis.get(variant) if isinstance(diagnosis, Mapping) else diagnosis,
            _law(fit, variant),
            threads.get(variant) if isinstance(threads, Mapping) else threads,
            unit,
            cores,
        )
        for variant in dict.fromkeys(str(point["variant"]) for point in points)
    ]
    return series[0].verdict() if len(series) == 1 else _comparison(series)


def _law(fit: Fits, variant: str) -> Mapping[str, Any] | None:
    """Return the fit of a variant as plain data."""
    if fit is None:
        return None
    if isinstance(fit, Mapping):
        return fit if "serial_s" in fit else _law(fit.get(variant), variant)
    if isinstance(fit, Sequence):
        return next((one for one in fit if one.get("variant") == variant), None)
    return fit.to_json()


@dataclass(frozen=True, slots=True)
class _Series:
    """The points of one variant, by thread count, and what is known of it."""

    variant: str
    points: Sequence[Point]
    diagnosis: Diagnosis | None
    fit: Mapping[str, Any] | None
    traced_threads: int | None
    unit: str
    cores: int | None

    @property
    def first(self) -> Point:
        return self.points[0]

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def best(self) -> Point:
        return min(self.points, key=_wall_s)

    @property
    def finding(self) -> Finding | None:
        found = self.diagnosis.findings if self.diagnosis else ()
        return found[0] if found else None

    @property
    def hold_growth(self) -> float:
        """How many times the hold time of the same work grows; 0 if that is not known."""
        before, after = (
            float(point.get("hold_s") or 0.0) / int(point["work"])
            for point in (self.first, self.last)
        )
        return after / before if before else 0.0

    @property
    def kind(self) -> str:
        """The verdict of the traced point, sharpened by what only the sweep shows."""
        finding = self.finding
        if finding is None:
            return HEALTHY
        evidence = finding.evidence
        spinning = (evidence.get("spin_s") or 0.0) >= MOSTLY * (evidence.get("wait_s") or 1.0)
        crowded = self.cores is not None and int(self.last["threads"]) > self.cores
        slowed = spinning and crowded and self.hold_growth >= LEAST_GROWTH
        if finding.kind == serialised_by_lock.KIND and slowed:
            return spin_collapse.KIND
        return finding.kind

    def verdict(self) -> SweepVerdict:
        return SweepVerdict(self.kind, f"{self.cause()}; {self.growth()}.", tuple(self.lines()))

    def cause(self) -> str:
        """Which lock, who holds it, who waits."""
        finding = self.finding
        if finding is None or finding.lock is None:
            if finding is not None:
                return finding.summary.rstrip(".")
            if _wall_s(self.last) >= RETROGRADE * _wall_s(self.first):
                return "More threads make the batch slower, but no recorded lock explains it"
            return "No lock limits the batch"
        lock = lock_and_origin(finding.lock)
        collapsed = self.kind == spin_collapse.KIND
        effect = "collapses under its spinning waiters" if collapsed else "serialises the batch"
        wait = "spin" if collapsed else "wait"
        victims = names(finding.victims)
        if " and " not in victims:
            wait += "s"
        if not finding.culprits:
            return f"{lock} {effect}: {victims} {wait}, who holds it was not recorded"
        return f"{lock} {effect}: {_blame(finding)}, {victims} {wait}"

    def growth(self) -> str:
        """How the batch time grows with threads."""
        done = f"{self.first['work']} {self.unit}"
        start = f"{seconds(_wall_s(self.first))} on {_threads(self.first)}"
        if len(self.points) == 1:
            return f"{done} take {start}, the only thread count measured"
        change = times(_wall_s(self.last) / _wall_s(self.first), same=SAME)
        text = (
            f"{done} take {start} and {seconds(_wall_s(self.last))} "
            f"on {self.last['threads']} ({change})"
        )
        if _wall_s(self.best) < (1.0 - SAME) * min(_wall_s(self.first), _wall_s(self.last)):
            text += f", at best {seconds(_wall_s(self.best))} on {self.best['threads']}"
        return text

    def lines(self) -> list[str]:
        """Evidence, then what to do."""
        lines = []
        if self.diagnosis is not None:
            plural = "s" * (self.traced_threads != 1)
            where = f"At {self.traced_threads} thread{plural}: " if self.traced_threads else ""
            lines.append(where + self.diagnosis.summary)
        finding = self.finding
        if finding is not None:
            lines += _unblamed_lines(finding)
        lines += self._hold_lines()
        lines += self._fit_lines()
        if finding is not None:
            lines += [f"Next: {self.remedy_line(remedy)}" for remedy in finding.remedies]
            others = self.diagnosis.findings[1:] if self.diagnosis else ()
            for other in others:
                if other.lock == finding.lock:
                    lines += [f"Then: {self.remedy_line(remedy)}" for remedy in other.remedies]
        return lines

    def remedy_line(self, remedy: Remedy) -> str:
        """What to do, and what it can bring where it was traced."""
        threads = self.traced_threads
        gain = gain_said(remedy.speedup, remedy.speedup_low, remedy.speedup_high)
        where = f"With {threads} thread{'s' * (threads != 1)} " if threads else ""
        return f"{remedy.text} ({where}{gain}.)" if gain else remedy.text

    def _hold_lines(self) -> list[str]:
        held_s = float(self.first.get("hold_s") or 0.0)
        if self.finding is None or not held_s or int(self.first["threads"]) != 1:
            return []
        lines = []
        if self.hold_growth >= LEAST_GROWTH:
            lines.append(
                f"The same work holds the lock for {seconds(held_s)} on 1 thread and for "
                f"{seconds(float(self.last['hold_s']))} on {self.last['threads']}: "
                "waiting threads slow the holder down."
            )
        lines.append(
            f"With this lock no thread count can beat {seconds(held_s)}: so long it is held on "
            "1 thread, and only one thread at a time can hold it."
        )
        return lines

    def _fit_lines(self) -> list[str]:
        fit = self.fit
        if not fit or fit.get("serial_s") is None:
            return []
        parts = [
            f"{seconds(float(fit['parallel_s']))} that divide by the threads",
            f"{seconds(float(fit['serial_s']))} that do not",
            f"{seconds(float(fit['per_thread_s']))} more for each added thread",
        ]
        best = fit.get("best_threads")
        advice = f"; it is fastest with {best} thread{'s' * (best != 1)}" if best else ""
        error = f" (mean error {percent(float(fit['mean_error']))})" if "mean_error" in fit else ""
        return [f"The fitted law{error} has {enumeration(parts)}{advice}."]


def _blame(finding: Finding) -> str:
    """Who holds the lock, and for how much of the waiting."""
    culprit = finding.culprits[0]
    blamed_s, wait_s = (float(finding.evidence.get(name) or 0.0) for name in ("blamed_s", "wait_s"))
    if not blamed_s or blamed_s >= (1.0 - LEAST_HAND_OFF) * wait_s:
        return f"{names([culprit])} holds it for {percent(culprit.share)} of the waiting"
    share = percent(min(1.0, culprit.thread_s / blamed_s))
    return f"{names([culprit])} causes {share} of the waiting for code run under it"


def _unblamed_lines(finding: Finding) -> list[str]:
    """Waiting that no code under the lock causes, where it is worth a word."""
    evidence = finding.evidence
    wait_s = float(evidence.get("wait_s") or 0.0)
    parts = [
        f"{percent(float(evidence.get(name) or 0.0) / wait_s)} passed while {what}"
        for name, what in (
            ("holder_gil_s", "the new holder itself waited for the GIL"),
            ("hand_off_s", "nobody held it: it was free, but no waiter had a CPU or woke up yet"),
        )
        if wait_s and float(evidence.get(name) or 0.0) >= LEAST_HAND_OFF * wait_s
    ]
    return [f"Of all the waiting, {enumeration(parts)}."] if parts else []


def _comparison(series: Sequence[_Series]) -> SweepVerdict:
    """Compare variants at the largest thread count that all of them have."""
    common = set.intersection(*({int(p["threads"]) for p in one.points} for one in series))
    count = max(common, default=None)
    if count is None:
        raise ValueError("the variants have no thread count in common; measure them at one")

    def at_count(one: _Series) -> float:
        return _wall_s(next(p for p in one.points if int(p["threads"]) == count))

    ranked = sorted(series, key=at_count)
    fastest, slowest = ranked[0], ranked[-1]
    ratio = at_count(slowest) / at_count(fastest)
    summary = (
        f"With {count} thread{'s' * (count != 1)} `{fastest.variant}` takes "
        f"{seconds(at_count(fastest))} for {fastest.first['work']} {fastest.unit} and "
        f"`{slowest.variant}` {seconds(at_count(slowest))} ({times(ratio, same=SAME)})"
    )
    if slowest.finding is not None:
        summary += f": {slowest.cause()}"
    lines = [
        f"`{one.variant}`: {seconds(at_count(one))} with {count} thread{'s' * (count != 1)}; "
        f"{one.cause()}; {one.growth()}."
        for one in ranked
    ]
    if slowest.finding is not None:
        lines += [f"Next: {slowest.remedy_line(remedy)}" for remedy in slowest.finding.remedies]
    return SweepVerdict(slowest.kind, f"{summary}.", tuple(lines))


def _wall_s(point: Point) -> float:
    return float(point["wall_s"]["median"])


def _threads(point: Point) -> str:
    count = int(point["threads"])
    return f"{count} thread" if count == 1 else f"{count} threads"
