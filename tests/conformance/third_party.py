"""Other projects' tests with and without `contention-lab record`: what ends differently?

`python tests/conformance/third_party.py` takes about half an hour, with `--ci` about five minutes,
and needs a package index. The suites are those of `suites.toml`: each comes with the project's
source package and runs in a fresh virtual environment, once as it is and once recorded, each in a
fresh copy of the sources. What ends differently is run again before it is believed
(`comparison.py`). The exit status is 1 if there is a steady difference.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comparison import HERE, Run, judge, now, read_run, run_process, version_of

SUITES = HERE / "suites.toml"
OPTIONS = ("-p", "no:cacheprovider", "-p", "pytest_outcomes", "--outcomes", "outcomes", "-q")
LEFT_BEHIND = ("PYTHON", "PIP_", "VIRTUAL_ENV", "CI")
"""What the beginnings are of variables that the tests do not see, and proxies'."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a project, as `suites.toml` describes them."""

    name: str
    package: str
    requirements: list[str]
    tests: list[str]
    without: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    pythons: list[str] = field(default_factory=list)
    ci: bool = False

    def is_for(self, version: str) -> bool:
        """Return whether this suite is for a Python."""
        return not self.pythons or version.rpartition(".")[0] in self.pythons


@dataclass(frozen=True, slots=True)
class Installed:
    """A suite in the virtual environment of a Python."""

    label: str
    suite: Suite
    python: Path
    source: Path
    seconds: float

    def run(self, names: list[str], *, recorded: bool) -> Run:
        """Run its tests, or some, in a process of their own and a copy of the sources."""
        with tempfile.TemporaryDirectory(prefix="clt", ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary, "source")
            with tarfile.open(self.source) as archive:
                archive.extractall(temporary, filter="data")
            next(Path(temporary).iterdir()).rename(folder)
            left_out = [f"--deselect={test}" for test in self.suite.without]
            tests = names or [*self.suite.tests, *left_out]
            command = ["-m", "pytest", *OPTIONS, *tests]
            if recorded:
                start = [str(HERE / "recorded.py"), "record", "-q", "-o", "../run.clt"]
                command = [*start, *command]
            before = now()
            status = run_process(
                [str(self.python), *command], folder, self.seconds, self._environment()
            )
            took = now() - before
            run = read_run(folder / "outcomes", status, took, folder / "output")
            if recorded and not Path(temporary, "run.clt").exists():
                sys.exit(f"{self.label}: nothing was recorded:\n{run.output}")
            return run

    def can_run_alone(self, test: str) -> bool:
        """Return whether this names a test."""
        return "::" in test

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(LEFT_BEHIND) and not name.lower().endswith("_proxy")
        }
        return {**kept, "PYTHONHASHSEED": "0", **self.suite.environment}


def read_suites() -> list[Suite]:
    """Read `suites.toml`."""
    tables: dict[str, Any] = tomllib.loads(SUITES.read_text())
    return [Suite(name, **table) for name, table in tables.items()]


def install(suite: Suite, python: str, version: str, cache: Path, seconds: float) -> Installed:
    """Make an environment with a suite's package, from its sources, and what its tests need."""
    folder = cache / f"{suite.name}-{version}"
    environment = {**os.environ, **suite.environment}
    own = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _call([python, "-m", "venv", str(folder)], environment)
        pip = [str(own), "-m", "pip", "-q", "--disable-pip-version-check"]
        name = suite.package.partition("==")[0]
        download = ["download", "--no-deps", "--no-binary", name, "-d", str(folder / "sdist")]
        _call([*pip, *download, suite.package], environment)
        source = _source(folder)
        _call([*pip, "install", str(source), *suite.requirements], environment)
        packages = next(folder.glob("lib/python*/site-packages"))
        shutil.copy(HERE / "pytest_outcomes.py", packages)
        (folder / "ready").touch()
    return Installed(
        f"{version}  {suite.package}, {suite.name}", suite, own, _source(folder), seconds
    )


def _source(folder: Path) -> Path:
    return next((folder / "sdist").glob("*.tar.gz"))


def _call(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise InstallError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


class InstallError(Exception):
    """A suite's environment could not be made."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="PATH", help="default: this one")
    parser.add_argument("--only", action="append", metavar="SUITE", help="as flask")
    parser.add_argument("--ci", action="store_true", help="only the suites that are quick")
    parser.add_argument("--list", action="store_true", help="name the suites")
    parser.add_argument("--seconds", type=float, default=1200.0, help="given to a suite")
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="keep the environments there, to use them again",
    )
    options = parser.parse_args()
    suites = [suite for suite in read_suites() if suite.ci or not options.ci]
    if options.only:
        unknown = {*options.only} - {suite.name for suite in suites}
        if unknown:
            parser.error(f"no such suite: {', '.join(sorted(unknown))}")
        suites = [suite for suite in suites if suite.name in options.only]
    if options.list:
        print("\n".join(f"{suite.name:20} {suite.package}" for suite in suites))
        return 0
    with tempfile.TemporaryDirectory(prefix="clt", ignore_cleanup_errors=True) as temporary:
        cache = (options.cache or Path(temporary)).absolute()
        good = [
            _judged(suite, python, version, cache, options.seconds)
            for python in options.python or [sys.executable]
            for version in [version_of(python)]
            for suite in suites
            if suite.is_for(version)
        ]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return not good or not all(good)


def _judged(suite: Suite, python: str, version: str, cache: Path, seconds: float) -> bool:
    try:
        installed = install(suite, python, version, cache, seconds)
    except InstallError as error:
        print(f"{version}  {suite.package}, {suite.name}: cannot be installed\n{error}", flush=True)
        return False
    return judge(installed, lambda _: "")


if __name__ == "__main__":
    sys.exit(main())
