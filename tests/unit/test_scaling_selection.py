"""Which law is chosen for curves of known shape, and what fits of every law have in common."""

from __future__ import annotations

import numpy as np
import pytest

from contention_lab.scaling.law import LAWS, Law
from contention_lab.scaling.least_squares import fit_law
from contention_lab.scaling.selection import aicc, compare

DOUBLING = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
NOISE = np.exp(0.01 * np.array([0.3, -1.1, 0.7, -0.2, 1.2, -0.8, 0.4]))
KNOWN = {
    "linear": 64.0 / DOUBLING,
    "amdahl": 64.0 / DOUBLING + 8.0,
    "usl": 64.0 / DOUBLING + 8.0 + 0.4 * (DOUBLING - 1.0),
    "hockey-stick": np.maximum(64.0 / DOUBLING, 10.0),
    "hand-off": np.maximum(64.0 / DOUBLING, 3.0 + 0.7 * (DOUBLING - 1.0)),
    "plateau": 64.0 / np.minimum(DOUBLING, 8.0) + 6.0,
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_curve_of_known_shape_is_recognised(name: str) -> None:
    comparison = compare(DOUBLING, KNOWN[name] * NOISE)

    assert comparison.chosen.fit.law.name == name
    assert comparison.method == "leave-one-out"


def test_a_step_at_the_cores_is_two_regimes() -> None:
    threads = np.arange(1.0, 17.0)
    seconds = 16.0 / np.minimum(threads, 8.0) + np.where(threads > 8, 20.0 + threads - 8, 0.0)

    comparison = compare(threads, seconds)

    assert comparison.chosen.fit.law.name == "two-regimes"
    assert 8.0 <= comparison.chosen.fit.knee < 9.0
    assert comparison.method == "aicc"


def test_known_cores_hold_the_knee() -> None:
    fit = fit_law(next(law for law in LAWS if law.has_knee), DOUBLING, KNOWN["plateau"], cores=4)

    assert fit.knee == 4.0


def test_support_sums_to_one_and_the_best_comes_first() -> None:
    comparison = compare(DOUBLING, KNOWN["usl"] * NOISE)
    weights = [candidate.weight for candidate in comparison.candidates]

    assert sum(weights) == pytest.approx(1.0)
    assert weights == sorted(weights, reverse=True)
    assert comparison.chosen in comparison.candidates


@pytest.mark.parametrize(("points", "excluded"), [(4, "plateau"), (6, "two-regimes")])
def test_laws_that_so_few_points_cannot_refute_are_left_out(points: int, excluded: str) -> None:
    comparison = compare(DOUBLING[:points], KNOWN["usl"][:points])

    assert excluded not in {candidate.fit.law.name for candidate in comparison.candidates}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_no_law_fits_worse_than_the_law_it_contains(law: Law) -> None:
    seconds = KNOWN["usl"] * NOISE**5
    linear = fit_law(LAWS[0], DOUBLING, seconds)

    fit = fit_law(law, DOUBLING, seconds)

    assert fit.sum_squares <= linear.sum_squares * (1.0 + 1e-9)
    assert np.all(fit.coefficients >= 0.0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_design_is_the_derivative_of_the_time(law: Law) -> None:
    coefficients = np.array([60.0, 8.0, 0.3, 0.2])[: len(law.terms)]
    design = law.design(coefficients, DOUBLING, 8.0)

    for index in range(len(law.terms)):
        moved = coefficients.copy()
        moved[index] += 1e-6
        slope = (
            law.seconds(moved, DOUBLING, 8.0) - law.seconds(coefficients, DOUBLING, 8.0)
        ) / 1e-6
        assert design[:, index] == pytest.approx(slope, abs=1e-6)


def test_repeats_are_left_out_together() -> None:
    threads = np.repeat(DOUBLING, 3)
    seconds = np.repeat(KNOWN["amdahl"], 3) * np.tile([0.99, 1.0, 1.01], len(DOUBLING))

    comparison = compare(threads, seconds)

    assert comparison.chosen.fit.law.name == "amdahl"
    assert comparison.chosen.score < 0.02


def test_the_criterion_refuses_to_judge_what_has_no_freedom() -> None:
    usl = next(law for law in LAWS if law.name == "usl")

    assert aicc(fit_law(usl, DOUBLING[:5], KNOWN["usl"][:5])) == float("inf")
    assert np.isfinite(aicc(fit_law(usl, DOUBLING, KNOWN["usl"])))
