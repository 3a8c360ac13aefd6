"""Scenario files: what is accepted, and the one line that a mistake gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.sweep.catalogue import find_scenario, shipped_names
from contention_lab.sweep.errors import ScenarioError
from contention_lab.sweep.scenario import Expectation, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
name = "bank"
title = "One lock around the bank"
story = "Tellers wait."
workload = "bank.py"
unit = "transfers"
threads = [4, 1, 2]
repeats = 5

[parameters]
accounts = 10
share = 0.5
fair = true

[quick]
accounts = 2

[variants]
key = "lock"
values = ["mutex", "spinlock"]

[expect]
shape = "flat"

[expect.spinlock]
shape = "retrograde"
verdict = "spin-collapse"
"""


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.toml"
    path.write_text(GOOD)
    return path


def test_a_scenario_file_is_read_in_full(bank: Path) -> None:
    scenario = read_scenario(bank)

    assert scenario.name == "bank"
    assert scenario.threads == (1, 2, 4)
    assert scenario.repeats == 5
    assert scenario.unit == "transfers"
    assert scenario.variant_parameters() == {
        "mutex": {"accounts": 10, "share": 0.5, "fair": True, "lock": "mutex"},
        "spinlock": {"accounts": 10, "share": 0.5, "fair": True, "lock": "spinlock"},
    }
    assert scenario.expectation("mutex") == Expectation("flat")
    assert scenario.expectation("spinlock") == Expectation("retrograde", ("spin-collapse",))


def test_without_variants_the_scenario_is_its_own_only_variant(bank: Path) -> None:
    bank.write_text('name = "one"\ntitle = "t"\nworkload = "autodiff"\nthreads = [1]\n')

    assert read_scenario(bank).variant_parameters() == {"one": {}}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("repeats = 5", "repeat = 5", "unknown key 'repeat'; did you mean 'repeats'?"),
        ("repeats = 5", 'repeats = "5"', "key 'repeats' must be a whole number, not '5'"),
        ("repeats = 5", "repeats = true", "key 'repeats' must be a whole number, not True"),
        ("repeats = 5", "repeats = 0", "key 'repeats' must be 1 or more, not 0"),
        ("threads = [4, 1, 2]", "threads = 4", "key 'threads' must be a list, not 4"),
        ("threads = [4, 1, 2]", "threads = [0]", "key 'threads' must list whole numbers"),
        ("threads = [4, 1, 2]", "threads = []", "key 'threads' must list whole numbers"),
        ("threads = [4, 1, 2]", "", "key 'threads' is missing; add: threads = ..."),
        ('name = "bank"', 'name = "a/b"', "key 'name' must be letters"),
        ("[quick]\naccounts", "[quick]\nacounts", "'quick.acounts'; did you mean 'accounts'?"),
        (
            "[quick]\naccounts = 2",
            "[quick]\naccounts = 'x'",
            "key 'quick.accounts' must be a whole",
        ),
        ("accounts = 10", "accounts = {a = 1}", "key 'parameters.accounts' must be a number"),
        ('key = "lock"', 'kye = "lock"', "unknown key 'variants.kye'; did you mean 'key'?"),
        ('key = "lock"', "", "key 'variants.key' is missing or empty"),
        ('key = "lock"', 'key = "share"', "key 'parameters.share' is also variants.key"),
        ('"mutex", "spinlock"', '"mutex", "mutex"', "key 'variants.values' has a value twice"),
        ("[expect.spinlock]", "[expect.spinlok]", "'expect.spinlok'; did you mean 'spinlock'?"),
        ('"retrograde"', '"retrogade"', "is 'retrogade'; did you mean 'retrograde'?"),
        ('verdict = "spin-collapse"', "verdict = 3", "key 'expect.spinlock.verdict' must be"),
        ("repeats = 5", "repeats = ", "not TOML: Invalid value (at line 8"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(
    bank: Path, old: str, new: str, complaint: str
) -> None:
    assert old in GOOD
    bank.write_text(GOOD.replace(old, new))

    with pytest.raises(ScenarioError) as caught:
        read_scenario(bank)

    line = str(caught.value)
    assert line.startswith(f"{bank}: ")
    assert complaint in line
    assert "\n" not in line


def test_bytes_that_are_not_text_are_refused(bank: Path) -> None:
    bank.write_bytes(b"name = \xff")

    with pytest.raises(ScenarioError, match="not UTF-8 at byte 7"):
        read_scenario(bank)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'autodiff-global-mutex'"):
        find_scenario("autodif-global-mutx")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nowhere\.toml: No such file"):
        find_scenario(str(tmp_path / "nowhere.toml"))


def test_every_shipped_scenario_is_valid_and_named_like_its_file() -> None:
    names = shipped_names()

    assert "autodiff-global-spinlock" in names
    assert [find_scenario(name).name for name in names] == list(names)
