"""What the command line changes about a scenario: thread counts, repeats, parameters, size.

It gives back another scenario and touches nothing else. A value given as text takes the type of the
value it replaces, so `--set steps=5` cannot turn a number into a string.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.sweep.errors import ScenarioError
from contention_lab.sweep.nearest import suggestion
from contention_lab.sweep.scenario import Scenario, Value, Variants, type_noun

if TYPE_CHECKING:
    from collections.abc import Sequence

QUICK_REPEATS: Final = 1
_TRUTH: Final = {"true": True, "false": False}


def adjusted(
    scenario: Scenario,
    *,
    threads: str | None = None,
    repeats: int | None = None,
    settings: Sequence[str] = (),
    quick: bool = False,
) -> Scenario:
    """Return the scenario with changes.

    Parameters
    ----------
    threads
        Thread counts, "1,2,4".
    repeats
        Timed runs of every point.
    settings
        "key=value" each. The key is a parameter or the key of the variants; the latter takes
        several values ("client=global-mutex,narrow-lock") and compares them.
    quick
        Replace parameters by the scenario's `[quick]` ones, take its `quick_threads` if it has any,
        and time every point once; explicit `threads`, `repeats` and `settings` go before it.

    Raises
    ------
    ScenarioError
        A key or a value is not valid.
    """
    if quick:
        scenario = replace(
            scenario,
            parameters={**scenario.parameters, **scenario.quick},
            repeats=QUICK_REPEATS,
            threads=scenario.quick_threads or scenario.threads,
        )
    if threads is not None:
        scenario = replace(scenario, threads=thread_counts(threads))
    if repeats is not None:
        if repeats < 1:
            raise ScenarioError(f"--repeats must be 1 or more, not {repeats}")
        scenario = replace(scenario, repeats=repeats)
    for setting in settings:
        scenario = _with_setting(scenario, setting)
    return scenario


def thread_counts(text: str) -> tuple[int, ...]:
    """Return the thread counts named in "1,2,4", sorted, each once.

    Raises
    ------
    ScenarioError
        One is not a whole number from 1 up.
    """
    try:
        counts = {int(part) for part in text.split(",")}
    except ValueError:
        counts = {0}
    if min(counts) < 1:
        raise ScenarioError(f"--threads {text!r}: give whole numbers from 1 up, such as 1,2,4")
    return tuple(sorted(counts))


def _with_setting(scenario: Scenario, setting: str) -> Scenario:
    key, equals, text = setting.partition("=")
    if not equals:
        raise ScenarioError(f"--set {setting!r}: give key=value, such as --set {setting}=1")
    if scenario.variants is not None and key == scenario.variants.key:
        kind = scenario.variants.values[0]
        values = tuple(_typed(key, part, kind) for part in text.split(","))
        if len(set(map(str, values))) < len(values):
            raise ScenarioError(f"--set {setting!r}: a value is there twice")
        return replace(scenario, variants=Variants(key, values))
    if key not in scenario.parameters:
        known = [*scenario.parameters]
        if scenario.variants is not None:
            known.append(scenario.variants.key)
        raise ScenarioError(
            f"--set {setting!r}: {scenario.path} has no parameter {key!r}{suggestion(key, known)}"
        )
    value = _typed(key, text, scenario.parameters[key])
    return replace(scenario, parameters={**scenario.parameters, key: value})


def _typed(key: str, text: str, default: Value) -> Value:
    """Return `text` as a value of the type of `default`."""
    if isinstance(default, list):
        return [_typed(key, part, default[0]) for part in text.split(",")] if default else [text]
    try:
        if isinstance(default, bool):
            return _TRUTH[text.lower()]
        return type(default)(text)
    except (KeyError, ValueError) as error:
        noun = type_noun(type(default))
        raise ScenarioError(
            f"--set {key}={text}: {key!r} must be {noun}, such as {_example(default)}"
        ) from error


def _example(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
