"""CPython's own tests with and without `contention-lab record`: what ends differently?

`python tests/conformance/cpython.py` takes about half an hour for a Python, with `--quick` about
three minutes. The interpreters need this checkout's core built for them; the tests are the package
`test` that came with each. Every module runs once as it is and once recorded, each in a process and
a folder of its own. What ends differently is run again before it is believed (`comparison.py`). The
exit status is 1 if there is a steady difference that `allowed.py` does not explain.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from allowed import reason
from comparison import HERE, Run, judge, now, read_run, run_process, version_of

QUICK = (
    "test.test_thread",
    "test.test_threading",
    "test.test_threading_local",
    "test.test_threadsignals",
    "test.test_threadedtempfile",
    "test.test_queue",
    "test.test_sched",
    "test.test_asyncio.test_locks",
    "test.test_asyncio.test_queues",
    "test.test_importlib.test_locks",
    "test.test_importlib.test_threaded_import",
    "lock_types",
)
LONG = (
    "test.test_fork1",
    "test.test_asyncio.test_tasks",
    "test.test_asyncio.test_events",
    "test.test_logging",
    "test.test_signal",
    "test.test_concurrent_futures",
    "test.test_multiprocessing_fork",
    "test.test_multiprocessing_spawn",
    "test.test_multiprocessing_forkserver",
)
FALLBACKS = {
    f"test.test_multiprocessing_{way}": f"processes_{way}"
    for way in ("fork", "spawn", "forkserver")
}
"""Some builds of CPython leave out these modules, but not the tests in them."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of tests, and the Python to judge by."""

    label: str
    python: str
    name: str
    seconds: float
    more: str
    """A folder with more modules of the package `test`."""

    def run(self, names: list[str], *, recorded: bool) -> Run:
        """Run its tests, or some, in a process and a folder of their own."""
        with tempfile.TemporaryDirectory(prefix="clt", ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary)
            command = [str(HERE / "outcomes.py"), "outcomes", str(self.seconds)]
            if recorded:
                start = [str(HERE / "recorded.py"), "record", "-q", "-o", "run.clt"]
                command = [*start, *command]
            environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
            if self.more:
                environment["MORE_TESTS"] = self.more
            before = now()
            status = run_process(
                [self.python, *command, *(names or [self.name])],
                folder,
                self.seconds + 30,
                environment,
            )
            run = read_run(folder / "outcomes", status, now() - before, folder / "output")
            if recorded and not (folder / "run.clt").exists():
                sys.exit(f"{self.python}: nothing was recorded:\n{run.output}")
            return run

    def can_run_alone(self, test: str) -> bool:
        """Return whether this names a method: not `setUpModule (module)`."""
        return " " not in test


def modules_of(python: str, asked: list[str], seconds: float, more: str) -> list[Module]:
    """Return what a Python has of the modules; say what it has not."""
    version = version_of(python)
    found = []
    for name in asked:
        for present in (name, FALLBACKS.get(name, "")):
            if present and _has(python, present, more):
                found.append(Module(f"{version}  {name}", python, present, seconds, more))
                break
        else:
            print(f"{version}  {name}: did not come with this Python", flush=True)
    return found


def _has(python: str, module: str, more: str) -> bool:
    code = (
        "import importlib.util, sys, test; test.__path__.extend(sys.argv[2:]); "
        "sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    )
    done = subprocess.run([python, "-c", code, module, *filter(None, [more])], cwd=HERE)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="PATH", help="default: this one")
    parser.add_argument("--module", action="append", metavar="NAME", help="as test_queue")
    parser.add_argument("--quick", action="store_true", help="what takes about three minutes")
    parser.add_argument("--seconds", type=float, default=900.0, help="given to a module")
    parser.add_argument(
        "--tests", default="", metavar="FOLDER", help="more modules of the package test"
    )
    options = parser.parse_args()
    known = [*QUICK, *LONG]
    asked = [*QUICK] if options.quick else known
    if options.module:
        asked = [
            next((m for m in known if name in (m, m.partition(".")[2], m.rpartition(".")[2])), name)
            for name in options.module
        ]
    good = [
        judge(module, reason)
        for python in options.python or [sys.executable]
        for module in modules_of(python, asked, options.seconds, options.tests)
    ]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return not good or not all(good)


if __name__ == "__main__":
    sys.exit(main())
