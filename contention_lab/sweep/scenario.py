"""A scenario: what a sweep varies, what it holds fixed, and what is expected of it.

It reads and checks one TOML document. It does not look for files (`catalogue`), change values
(`adjustment`) or know what the parameters of a workload mean (`workload`). A mistake is one line
that names the file, the key and the nearest valid name.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from contention_lab.sweep.errors import ScenarioError
from contention_lab.sweep.nearest import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Value: TypeAlias = bool | int | float | str | list[Any]
"""What a parameter can be: whatever TOML and JSON both say exactly."""

SHAPES: Final = ("scales", "flat", "retrograde")
"""How batch time can run against threads; `expectation` says when which is seen."""


@dataclass(frozen=True, slots=True)
class Variants:
    """The parameter in which a scenario's variants differ, and its values, one per variant."""

    key: str
    values: tuple[Value, ...]

    def names(self) -> tuple[str, ...]:
        """Return one name per variant."""
        return tuple(str(value) for value in self.values)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of one variant; None and () where nothing is."""

    shape: str | None = None
    verdicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is predicted before anything is measured.

    Attributes
    ----------
    source
        The only variant that is recorded for it.
    threads
        Thread counts of these recordings.
    cores
        Cores of the larger machines that are predicted, too.
    """

    source: str
    threads: tuple[int, ...]
    cores: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario, checked.

    Attributes
    ----------
    path
        The file it was read from.
    workload
        A name of `workload.WORKLOADS`, or a script beside the file (`something.py`).
    unit
        What the workload counts, in the plural.
    parameters
        What every variant shares.
    quick
        Parameters that `--quick` replaces.
    quick_threads
        Thread counts of `--quick`; () for the usual ones.
    variants
        None where there is nothing to compare.
    expectations
        By variant; the key "" holds for every variant.
    predict
        None where nothing is predicted.
    """

    path: Path
    name: str
    title: str
    story: str
    workload: str
    unit: str
    parameters: Mapping[str, Value]
    quick: Mapping[str, Value]
    threads: tuple[int, ...]
    repeats: int
    variants: Variants | None
    expectations: Mapping[str, Expectation]
    predict: Forecast | None = None
    quick_threads: tuple[int, ...] = ()

    def variant_parameters(self) -> dict[str, dict[str, Value]]:
        """Return the parameters of every variant, by the variant's name."""
        if self.variants is None:
            return {self.name: dict(self.parameters)}
        return {
            name: {**self.parameters, self.variants.key: value}
            for name, value in zip(self.variants.names(), self.variants.values, strict=True)
        }

    def expectation(self, variant: str) -> Expectation:
        """Return what is expected of a variant."""
        return self.expectations.get(variant) or self.expectations.get("", Expectation())


_KEYS: Final[Mapping[str, type]] = {
    "name": str,
    "title": str,
    "story": str,
    "workload": str,
    "unit": str,
    "threads": list,
    "quick_threads": list,
    "repeats": int,
    "parameters": dict,
    "quick": dict,
    "variants": dict,
    "expect": dict,
    "predict": dict,
}
_REQUIRED: Final = ("name", "title", "workload", "threads")
_NOUNS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a table",
}


def read_scenario(path: Path) -> Scenario:
    """Read and check one scenario file.

    Raises
    ------
    ScenarioError
        One line: the file, the key, what is wrong with it, and the nearest valid name.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: not TOML: {error}") from error
    return _Document(path, document).scenario()


def type_noun(kind: type) -> str:
    """Return what a TOML type is called in an error line."""
    return _NOUNS[kind]


def is_a(value: object, kind: type) -> bool:
    """Tell whether a value can stand where `kind` is wanted: a whole number is also a number."""
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


@dataclass(frozen=True, slots=True)
class _Document:
    """A TOML document on its way to a `Scenario`."""

    path: Path
    content: Mapping[str, Any]

    def scenario(self) -> Scenario:
        self._check_table("", self.content, _KEYS)
        for key in _REQUIRED:
            if key not in self.content:
                raise self._mistake(key, f"is missing; add: {key} = ...")
        parameters = self._parameters("parameters")
        variants = self._variants()
        return Scenario(
            path=self.path,
            name=self._name(),
            title=self.content["title"],
            story=self.content.get("story", "").strip(),
            workload=self.content["workload"],
            unit=self.content.get("unit", "items"),
            parameters=parameters,
            quick=self._quick(parameters),
            threads=self._threads(),
            repeats=self._repeats(),
            variants=variants,
            expectations=self._expectations(variants),
            predict=self._predict(variants),
            quick_threads=self._threads("quick_threads") if "quick_threads" in self.content else (),
        )

    def _mistake(self, key: str, what: str) -> ScenarioError:
        return ScenarioError(f"{self.path}: key {key!r} {what}")

    def _check_table(self, where: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
        for key, value in table.items():
            if key not in keys:
                raise ScenarioError(
                    f"{self.path}: unknown key {where + key!r}{suggestion(key, keys)}"
                )
            if not is_a(value, keys[key]):
                noun = type_noun(keys[key])
                raise self._mistake(where + key, f"must be {noun}, not {value!r}")

    def _name(self) -> str:
        name: str = self.content["name"]
        if not name or not all(letter.isalnum() or letter in "-_" for letter in name):
            raise self._mistake("name", f"must be letters, digits, - and _, not {name!r}")
        return name

    def _threads(self, key: str = "threads") -> tuple[int, ...]:
        counts = self.content[key]
        if not counts or not all(is_a(count, int) and count >= 1 for count in counts):
            raise self._mistake(key, f"must list whole numbers from 1 up, not {counts!r}")
        return tuple(sorted(set(counts)))

    def _repeats(self) -> int:
        repeats: int = self.content.get("repeats", 3)
        if repeats < 1:
            raise self._mistake("repeats", f"must be 1 or more, not {repeats}")
        return repeats

    def _parameters(self, section: str) -> dict[str, Value]:
        table: dict[str, Any] = self.content.get(section, {})
        for key, value in table.items():
            if not isinstance(value, bool | int | float | str | list):
                kinds = "a number, a string, true, false or a list"
                raise self._mistake(f"{section}.{key}", f"must be {kinds}, not {value!r}")
        return table

    def _quick(self, parameters: Mapping[str, Value]) -> dict[str, Value]:
        quick = self._parameters("quick")
        self._check_table(
            "quick.", quick, {key: type(default) for key, default in parameters.items()}
        )
        return quick

    def _variants(self) -> Variants | None:
        table = self.content.get("variants")
        if table is None:
            return None
        self._check_table("variants.", table, {"key": str, "values": list})
        for key in ("key", "values"):
            if not table.get(key):
                raise self._mistake(f"variants.{key}", "is missing or empty")
        values = table["values"]
        if len({str(value) for value in values}) < len(values):
            raise self._mistake("variants.values", f"has a value twice: {values!r}")
        if table["key"] in self.content.get("parameters", {}):
            raise self._mistake(
                f"parameters.{table['key']}", "is also variants.key; remove one of the two"
            )
        return Variants(table["key"], tuple(values))

    def _predict(self, variants: Variants | None) -> Forecast | None:
        table = self.content.get("predict")
        if table is None:
            return None
        self._check_table("predict.", table, {"source": str, "threads": list, "cores": list})
        if variants is None or table.get("source") not in variants.names():
            raise self._mistake("predict.source", "must be one of variants.values")
        counts = {key: table.get(key, []) for key in ("threads", "cores")}
        for key, values in counts.items():
            if not all(is_a(value, int) and value >= 1 for value in values):
                raise self._mistake(f"predict.{key}", f"must list whole numbers, not {values!r}")
        if 1 not in counts["threads"] or len(counts["threads"]) < 2:
            raise self._mistake("predict.threads", "must list 1 and a larger number")
        return Forecast(table["source"], tuple(counts["threads"]), tuple(counts["cores"]))

    def _expectations(self, variants: Variants | None) -> dict[str, Expectation]:
        table: dict[str, Any] = self.content.get("expect", {})
        names = variants.names() if variants is not None else ()
        per_variant = dict.fromkeys(names, dict)
        self._check_table("expect.", table, {"shape": str, "verdict": object, **per_variant})
        found = {
            name: self._expectation(f"expect.{name}.", table[name])
            for name in names
            if name in table
        }
        shared = {key: value for key, value in table.items() if key not in per_variant}
        return {**found, "": self._expectation("expect.", shared)}

    def _expectation(self, where: str, table: Mapping[str, Any]) -> Expectation:
        self._check_table(where, table, {"shape": str, "verdict": object})
        shape = table.get("shape")
        if shape is not None and shape not in SHAPES:
            raise self._mistake(f"{where}shape", f"is {shape!r}{suggestion(shape, SHAPES)}")
        verdict = table.get("verdict", [])
        verdicts = [verdict] if isinstance(verdict, str) else verdict
        if not isinstance(verdicts, list) or not all(isinstance(kind, str) for kind in verdicts):
            raise self._mistake(f"{where}verdict", f"must be a string or a list, not {verdict!r}")
        return Expectation(shape, tuple(verdicts))
