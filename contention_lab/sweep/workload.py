"""What a sweep can run: the registry of workloads, and what one gives back.

It holds no workload. One that ships with the package is a module; a scenario can also bring a
script of its own. Either defines

    run(parameters, threads, *, around) -> object with wall_s, cpu_s, work and losses

and spreads a fixed batch of work over `threads` threads. The batch, and nothing else, runs inside
`with around():`, which is where the sweep switches the recorder on. It may also define

    parse(parameters)

which raises ValueError, in one line, for parameters it cannot run with.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from contention_lab.sweep.errors import ScenarioError
from contention_lab.sweep.nearest import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from contention_lab.sweep.scenario import Scenario, Value

WORKLOADS: Final[Mapping[str, str]] = {"autodiff": "contention_lab.autodiff.workload"}
"""Module of every workload, by the name a scenario gives it."""


class Measured(Protocol):
    """What a workload gives back."""

    @property
    def wall_s(self) -> float:
        """Seconds the batch took."""

    @property
    def cpu_s(self) -> float:
        """Seconds of CPU time the process spent on it."""

    @property
    def work(self) -> int:
        """How many items of the scenario's unit were done."""

    @property
    def losses(self) -> Sequence[Any]:
        """A result of every item, where it has one; equal whatever the number of threads."""


class Workload(Protocol):
    """A module, or a script, that a sweep can run."""

    def run(
        self,
        parameters: Mapping[str, Value],
        threads: int,
        *,
        around: Callable[[], AbstractContextManager[object]],
    ) -> Measured:
        """Do the batch on `threads` threads."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A `Measured` for scripts that need no more than its four figures."""

    wall_s: float
    cpu_s: float
    work: int
    losses: tuple[str, ...] = ()


def workload_source(scenario: Scenario) -> str:
    """Return where a scenario's workload is: a module's name or a script's absolute path.

    Raises
    ------
    ScenarioError
        There is no such workload or script.
    """
    name = scenario.workload
    if name in WORKLOADS:
        return WORKLOADS[name]
    if not name.endswith(".py"):
        raise ScenarioError(
            f"{scenario.path}: key 'workload': no workload {name!r}{suggestion(name, WORKLOADS)}"
        )
    script = (scenario.path.parent / name).resolve()
    if not script.is_file():
        raise ScenarioError(f"{scenario.path}: key 'workload': no file {script}")
    return str(script)


def check_parameters(scenario: Scenario) -> None:
    """Ask the workload whether it can run with the parameters of every variant.

    Scripts are not asked: they run only in the processes of a sweep.

    Raises
    ------
    ScenarioError
        It cannot.
    """
    source = workload_source(scenario)
    parse = None if source.endswith(".py") else getattr(load_workload(source), "parse", None)
    if parse is None:
        return
    for parameters in scenario.variant_parameters().values():
        try:
            parse(parameters)
        except ValueError as error:
            raise ScenarioError(f"{scenario.path}: {error}") from error


def load_workload(source: str) -> Workload:
    """Import a workload from what `workload_source` returned."""
    if not source.endswith(".py"):
        module: Any = importlib.import_module(source)
        return module  # type: ignore[no-any-return]
    path = Path(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module  # type: ignore[no-any-return]
