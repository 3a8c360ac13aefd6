"""The sentences of a conclusion: the verdict, its evidence, and what to do next.

Every figure in them comes from the fit; nothing is concluded here that the figures do not say. A
remedy that only makes a lock cheaper is never sold as one that lifts the serial part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from contention_lab.scaling.shape import cliffs, medians

if TYPE_CHECKING:
    from contention_lab.scaling.bounds import Bounds
    from contention_lab.scaling.fit import ScalingFit
    from contention_lab.scaling.law import FloatArray
    from contention_lab.scaling.measurements import Measurements
    from contention_lab.scaling.selection import Comparison

Kind = Literal["retrograde", "cliff", "saturated", "sublinear", "scales", "too-few-points"]

RETROGRADE: Final = 0.95
"""The largest count must lose more than this share of the best throughput to count as falling."""
NEARLY_ALL: Final = 0.9
"""Share of pairs of repeats, one with each count, in which the larger one has to be the slower."""

EFFICIENT: Final = 0.8
"""A speed-up of at least this share of the threads is called scaling."""

POOR: Final = 0.2
"""A law with a larger mean error says nothing about remedies."""

GAIN: Final = 1.1
"""Throughput that grew by less than this over the last doubling has saturated."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to tell a person.

    Attributes
    ----------
    kind
        Stable identifier.
    summary
        One sentence.
    lines
        The evidence, one sentence each.
    notes
        What is irregular, and what these numbers cannot tell.
    next
        What to type or do next.
    """

    kind: Kind
    summary: str
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    next: str

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return {
            "kind": self.kind,
            "summary": self.summary,
            "lines": list(self.lines),
            "next": self.next,
        }


def verdict_on(
    table: Measurements,
    comparison: Comparison | None,
    usl: ScalingFit | None,
    bounds: Bounds | None,
    notes: tuple[str, ...],
) -> Verdict:
    """Word the conclusion about a table.

    Parameters
    ----------
    table
        The measurements.
    comparison, usl
        The laws, with at least four thread counts.
    bounds
        Otherwise.
    notes
        Passed on.
    """
    counts, seconds = medians(table.threads, table.seconds)
    if comparison is None or usl is None:
        assert bounds is not None
        return Verdict(
            "too-few-points",
            f"{_few(len(counts))}: bounds only, no law.",
            (bounds.reason + ".", *_bound_lines(bounds, table)),
            notes,
            "measure at least four thread counts, doubling each time: 1 2 4 8",
        )
    kind = _kind(table, counts, seconds, cliffs(table.threads, table.seconds))
    lines = (*_law_lines(comparison, usl, table), *_remedy_lines(usl, counts, table))
    return Verdict(kind, _summary(kind, counts, seconds), lines, notes, _next(kind, counts))


def duration(seconds: float) -> str:
    """Return a time with three significant digits."""
    if seconds == 0.0:
        return "0 s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if abs(seconds) >= scale or unit == "ns":
            return f"{figure(seconds / scale)} {unit}"
    raise AssertionError("unreachable")


def figure(value: float) -> str:
    """Return a number with three significant digits, without an exponent below a million."""
    if value == 0.0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3g}"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{digits}f}"


def _share(share: float) -> str:
    """Return a share of one with two decimals, more where it is small."""
    return f"{share:.2f}" if share >= 0.1 or share == 0.0 else f"{share:.2g}"


def _few(distinct: int) -> str:
    return "1 thread count" if distinct == 1 else f"{distinct} thread counts"


def _kind(
    table: Measurements,
    counts: FloatArray,
    seconds: FloatArray,
    found: tuple[tuple[float, float, float], ...],
) -> Kind:
    rates = 1.0 / seconds
    if found:
        return "cliff"
    best = counts[int(np.argmax(rates))]
    if rates[-1] < RETROGRADE * rates.max() and _is_slower(table, counts[-1], best):
        return "retrograde"
    if rates[-1] * counts[0] >= EFFICIENT * rates[0] * counts[-1]:
        return "scales"
    half = float(np.interp(np.log(counts[-1] / 2.0), np.log(counts), np.log(rates)))
    return "saturated" if rates[-1] < GAIN * np.exp(half) else "sublinear"


def _is_slower(table: Measurements, threads: float, than: float) -> bool:
    """Tell whether runs with a thread count are slower, as far as repeats can tell."""
    slow, fast = (table.seconds[table.threads == count] for count in (threads, than))
    if min(len(slow), len(fast)) < 2:
        return True
    return float(np.mean(slow[:, None] > fast[None, :])) >= NEARLY_ALL


def _summary(kind: Kind, counts: FloatArray, seconds: FloatArray) -> str:
    rates = 1.0 / seconds
    best = int(np.argmax(rates))
    most, first = f"{counts[-1]:g}", f"{counts[0]:g}"
    gain = figure(rates[-1] / rates[0])
    if kind == "cliff":
        return (
            f"Throughput falls off a cliff: {most} threads do "
            f"{figure(rates[-1] / rates[best])} times what {counts[best]:g} do."
        )
    if kind == "retrograde":
        ending = (
            f"falls from the first added thread on; the best thread count is {first}"
            if best == 0
            else f"is best at {counts[best]:g} threads and falls beyond"
        )
        return (
            f"Throughput {ending}: {most} threads take {figure(seconds[-1] / seconds[best])} times "
            f"as long as {counts[best]:g}."
        )
    if kind == "saturated":
        return (
            f"Throughput has stopped growing: {most} threads do {gain} times the work of {first}."
        )
    if kind == "scales":
        return f"It scales: {most} threads do {gain} times the work of {first}."
    return f"It scales in part: {most} threads do {gain} times the work of {first}."


def _in_seconds(table: Measurements) -> bool:
    """Whether a coefficient is the seconds of a batch that people know."""
    return table.kind == "time" and table.work == "fixed" and table.unit == "s"


def _amount(seconds: float, usl: ScalingFit, table: Measurements) -> str:
    """Return a coefficient as people can use it: seconds of a batch, else a share."""
    if _in_seconds(table):
        return duration(seconds)
    return f"{figure(100.0 * seconds / float(usl.predict(table.threads[0])))} %"


def _share_of(table: Measurements) -> str:
    """Say what the shares of `_amount` are shares of."""
    if _in_seconds(table):
        return ""
    first = float(table.threads[0])
    return " (of the time one thread takes)" if first == 1.0 else f" (of the time at {first:g})"


def _law_lines(comparison: Comparison, usl: ScalingFit, table: Measurements) -> tuple[str, ...]:
    chosen = comparison.chosen.fit
    low, high = usl.intervals["alpha"]
    spread = usl.standard_errors["per_thread_s"]
    lines = [
        f"Universal Scalability Law: serial share {_share(usl.alpha)} "
        f"(95 %: {_share(low)} to {_share(high)}), "
        f"each added thread costs {_amount(usl.per_thread_s, usl, table)} "
        f"± {_amount(spread, usl, table)}{_share_of(table)}; mean error "
        f"{100.0 * usl.mean_error:.1f} %.",
    ]
    if usl.amdahl_mean_error > 2.0 * usl.mean_error and usl.amdahl_mean_error > 0.05:
        lines.append(
            "Amdahl's law, which knows no cost per thread, cannot fit this: mean error "
            f"{100.0 * usl.amdahl_mean_error:.0f} %."
        )
    if chosen.law.name != "usl":
        knee = f", K = {chosen.knee:g}" if np.isfinite(chosen.knee) else ""
        lines.append(
            f"Best supported: {chosen.law.title}, {chosen.law.formula}{knee}; mean error "
            f"{100.0 * chosen.mean_error:.1f} %."
        )
    most = float(table.threads[-1])
    whole = float(usl.predict(most))
    last = usl.per_thread_s * (most - 1.0) / whole
    lines.append(
        f"Work that divides by the threads: {_amount(usl.parallel_s, usl, table)}; serial work: "
        f"{_amount(usl.serial_s, usl, table)}; per added thread: "
        f"{_amount(usl.per_thread_s, usl, table)}{_share_of(table)}. "
        f"At {most:g} threads the last makes up {100.0 * last:.0f} % of the time."
    )
    return tuple(lines)


def _remedy_lines(usl: ScalingFit, counts: FloatArray, table: Measurements) -> tuple[str, ...]:
    """Say what each kind of remedy could reach at most; only where there is something to gain."""
    if usl.mean_error > POOR:
        return (
            f"A mean error of {100.0 * usl.mean_error:.0f} % is no description: nothing is said "
            "here about remedies.",
        )
    most = float(counts[-1])
    single = usl.parallel_s + usl.serial_s
    whole = float(usl.predict(most))
    cheaper = usl.parallel_s / most + usl.serial_s
    if cheaper <= 0.0:
        return ()
    lines = []
    if whole > 1.05 * cheaper:
        lines.append(
            "A cheaper lock (parking, back-off, queueing) can at best remove the cost per thread: "
            f"{_amount(cheaper, usl, table)} at {most:g} threads, {figure(single / cheaper)} times "
            "as fast as one thread."
        )
    if cheaper > 1.25 * single / most:
        lines.append(
            "Only less serial work (narrowing, sharding) lifts the serial part: at most "
            f"{_amount(single / most, usl, table)} with {most:g} cores."
        )
    return tuple(lines)


def _bound_lines(bounds: Bounds, table: Measurements) -> tuple[str, ...]:
    in_seconds = _in_seconds(table)
    scale = 1.0 if in_seconds else 100.0 / bounds.fewest_thread_seconds

    def shown(value: float | None) -> str:
        if value is None:
            return "anything"
        return duration(value) if in_seconds else f"{figure(value * scale)} %"

    said = []
    for name, words in (
        ("parallel_s", "work that divides by the threads"),
        ("serial_s", "serial work"),
        ("per_thread_s", "cost of each added thread"),
    ):
        low, high = bounds.ranges[name]
        said.append(f"{words} {shown(low)} to {shown(high)}")
    base = "" if in_seconds else " (of the fewest thread-seconds the work took)"
    return (
        f"Any law P/N + S + h(N-1) within {100.0 * bounds.noise:.0f} % of the points has "
        + ", ".join(said)
        + base
        + ".",
    )


def _next(kind: Kind, counts: FloatArray) -> str:
    if kind == "scales":
        return f"measure beyond {counts[-1]:g} threads to see where it ends"
    return (
        "to see which lock it is and who holds it, record a run of the program at "
        f"{counts[-1]:g} threads: contention-lab record -o run.clt PROGRAM, then "
        "contention-lab diagnose run.clt"
    )
