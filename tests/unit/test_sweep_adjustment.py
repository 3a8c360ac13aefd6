"""What the command line changes about a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from contention_lab.sweep.adjustment import adjusted
from contention_lab.sweep.catalogue import find_scenario
from contention_lab.sweep.errors import ScenarioError
from contention_lab.sweep.scenario import Scenario, Variants

SCENARIO = Scenario(
    path=Path("bank.toml"),
    name="bank",
    title="",
    story="",
    workload="autodiff",
    unit="items",
    parameters={"steps": 20, "rate": 0.1, "fair": True, "note": "x", "widths": [8, 4]},
    quick={"steps": 2},
    threads=(1, 2),
    repeats=3,
    variants=Variants("client", ("global-spinlock",)),
    expectations={},
)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("steps=5", 5),
        ("rate=2", 2.0),
        ("rate=1e-3", 0.001),
        ("fair=false", False),
        ("note=a=b", "a=b"),
        ("widths=1,2,3", [1, 2, 3]),
    ],
)
def test_a_setting_takes_the_type_of_the_default(setting: str, value: object) -> None:
    changed = adjusted(SCENARIO, settings=[setting]).parameters[setting.partition("=")[0]]

    assert changed == value
    assert type(changed) is type(value)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("steps=five", "'steps' must be a whole number, such as 20"),
        ("steps=1.5", "'steps' must be a whole number"),
        ("rate=fast", "'rate' must be a number"),
        ("fair=maybe", "'fair' must be true or false, such as true"),
        ("widths=1,x", "'widths' must be a whole number"),
        ("step=5", "no parameter 'step'; did you mean 'steps'?"),
        ("clint=a", "no parameter 'clint'; did you mean 'client'?"),
        ("client=a,a", "a value is there twice"),
        ("steps", "give key=value, such as --set steps=1"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_what_is_right(setting: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        adjusted(SCENARIO, settings=[setting])

    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_variant_key_takes_several_values_to_compare() -> None:
    changed = adjusted(SCENARIO, settings=["client=narrow-lock,thread-local"])

    assert list(changed.variant_parameters()) == ["narrow-lock", "thread-local"]


def test_quick_shrinks_parameters_and_repeats_but_explicit_values_go_first() -> None:
    quick = adjusted(SCENARIO, quick=True)
    explicit = adjusted(SCENARIO, quick=True, repeats=2, settings=["steps=7"])

    assert (quick.parameters["steps"], quick.repeats) == (2, 1)
    assert (explicit.parameters["steps"], explicit.repeats) == (7, 2)


def test_thread_counts_are_sorted_and_unique() -> None:
    assert adjusted(SCENARIO, threads="8,1,8").threads == (1, 8)


@pytest.mark.parametrize("threads", ["", "0,1", "a", "1,,2", "-1"])
def test_bad_thread_counts_are_refused(threads: str) -> None:
    with pytest.raises(ScenarioError, match="--threads"):
        adjusted(SCENARIO, threads=threads)


def test_no_repeats_are_refused() -> None:
    with pytest.raises(ScenarioError, match="--repeats must be 1 or more"):
        adjusted(SCENARIO, repeats=0)


def test_the_scenario_given_is_left_as_it_was() -> None:
    adjusted(SCENARIO, threads="64", repeats=9, settings=["steps=1"], quick=True)

    assert SCENARIO.parameters["steps"] == 20
    assert SCENARIO.threads == (1, 2)


def test_a_quick_sweep_has_the_scenarios_fewer_threads_unless_others_are_asked_for() -> None:
    seven = find_scenario("autodiff-all-clients")

    assert adjusted(seven, quick=True).threads == (1, 2, 8, 32)
    assert adjusted(seven, quick=True, threads="4").threads == (4,)
    assert adjusted(seven).threads == (1, 2, 4, 8, 16, 32)
