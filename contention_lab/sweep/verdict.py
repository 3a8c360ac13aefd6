"""The verdict on a sweep, asked of `diagnosis` with everything that was measured.

It concludes nothing: it diagnoses every traced point, picks the most telling one of each variant,
and passes on the variants that can be compared.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from contention_lab.diagnosis import diagnose, most_telling, sweep_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.scaling import ScalingFit
    from contention_lab.sweep.points import Series


def verdict_on(
    series: Mapping[str, Series],
    fits: Mapping[str, ScalingFit | None],
    *,
    unit: str,
    cores: int,
) -> dict[str, Any]:
    """Return the verdict as `result.json` has it: "kind", "summary", and "lines", summary first.

    Parameters
    ----------
    series
        At least one point.
    fits
        By variant.
    """
    compared = _comparable(series)
    diagnoses = {
        variant: {
            threads: diagnose(points.traced[threads].trace) for threads in sorted(points.traced)
        }
        for variant, points in compared.items()
    }
    telling = {variant: most_telling(found) for variant, found in diagnoses.items()}
    verdict = sweep_verdict(
        [point for points in compared.values() for point in points.to_json()],
        {
            variant: diagnoses[variant][threads]
            for variant, threads in telling.items()
            if threads is not None
        },
        [{"variant": variant, **fit.to_json()} for variant, fit in fits.items() if fit is not None],
        threads={name: threads for name, threads in telling.items() if threads is not None},
        unit=unit,
        cores=cores,
    )
    return {
        "kind": verdict.kind,
        "summary": verdict.summary,
        "lines": [verdict.summary, *verdict.lines],
    }


def _comparable(series: Mapping[str, Series]) -> dict[str, Series]:
    """Return the variants with the thread count that most of them have: all, unless interrupted."""
    counts = Counter(threads for points in series.values() for threads in points.timed)
    shared = max(counts, key=lambda threads: (counts[threads], threads))
    return {variant: points for variant, points in series.items() if shared in points.timed}
