"""CPython's own tests with and without `contention-lab record`: what ends differently?

Run it by hand: `python tests/conformance/cpython.py`, see `--help`. The interpreters need click and
this checkout's core built for them; the tests are the package `test` that came with each. Every
module runs once as it is and once recorded, each in a process and a folder of its own. A method
that ends differently runs again by itself, both ways, up to twice: if it then ends alike it is
printed as unsteady, otherwise as a difference. The exit status is 1 if there is a difference that
`allowed.py` does not explain.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from allowed import reason

HERE = Path(__file__).resolve().parent
MODULES = (
    "test.test_thread",
    "test.test_threading",
    "test.test_threading_local",
    "test.test_threadsignals",
    "test.test_threadedtempfile",
    "test.test_queue",
    "test.test_sched",
    "test.test_asyncio.test_locks",
    "test.test_asyncio.test_queues",
    "test.test_asyncio.test_tasks",
    "test.test_asyncio.test_events",
    "test.test_importlib.test_locks",
    "test.test_importlib.test_threaded_import",
    "test.test_logging",
    "test.test_fork1",
    "test.test_signal",
    "lock_types",
    "test.test_concurrent_futures",
)
SLOW = (
    "test.test_multiprocessing_fork",
    "test.test_multiprocessing_spawn",
    "test.test_multiprocessing_forkserver",
)
FALLBACKS = {
    f"test.test_multiprocessing_{way}": f"processes_{way}"
    for way in ("fork", "spawn", "forkserver")
}
"""Some builds of CPython leave out these modules, but not the tests in them."""
SLOWER = 5.0
"""Seconds more that a method takes recorded which are worth a line: it may have waited in vain."""
TAIL = 40
"""Lines shown of what a run printed that did not end by itself."""


@dataclass(frozen=True, slots=True)
class Run:
    """How the tests of a module ended: per method its outcome and why, and the exit status."""

    outcomes: dict[str, tuple[str, str]]
    took: dict[str, float]
    status: int
    seconds: float
    output: str

    def ended(self, test: str) -> str:
        """Return how a method ended, in a word."""
        return self.outcomes.get(test, ("did not run", ""))[0]

    def why(self, test: str) -> str:
        """Return how a method ended, in a line."""
        return ": ".join(filter(None, self.outcomes.get(test, ("did not run", ""))))


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One Python to judge by."""

    path: str
    version: str

    @classmethod
    def at(cls, path: str) -> Interpreter:
        """Ask a Python for its version, and whether it can record at all."""
        code = (
            f"import sys; sys.path.insert(0, {str(HERE.parents[1])!r}); import click, platform, "
            "contention_lab.native._core; print(platform.python_version())"
        )
        done = subprocess.run([path, "-c", code], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{path}: cannot record: {done.stderr.strip().splitlines()[-1]}")
        return cls(path, done.stdout.strip())

    def has(self, module: str) -> bool:
        """Return whether this Python came with a module of tests."""
        code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
        return subprocess.run([self.path, "-c", code, module], cwd=HERE).returncode == 0

    def run(self, names: list[str], seconds: float, *, recorded: bool) -> Run:
        """Run tests in a process and a folder of their own."""
        with tempfile.TemporaryDirectory(prefix="clt", ignore_cleanup_errors=True) as folder:
            command = [str(HERE / "outcomes.py"), "outcomes", str(seconds), *names]
            if recorded:
                start = [str(HERE / "recorded.py"), "record", "-q", "-o", "run.clt"]
                command = [*start, *command]
            before = time.monotonic()
            status = _run([self.path, *command], folder, seconds + 30)
            took = time.monotonic() - before
            output = Path(folder, "output").read_text(errors="replace")
            if recorded and not Path(folder, "run.clt").exists():
                sys.exit(f"{self.path}: nothing was recorded:\n{output}")
            return Run(*_read(Path(folder, "outcomes")), status, took, output)


def _run(command: list[str], folder: str, seconds: float) -> int:
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}
    with (
        Path(folder, "output").open("wb") as output,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # it, or what it left running
    return status


def _read(path: Path) -> tuple[dict[str, tuple[str, str]], dict[str, float]]:
    outcomes: dict[str, tuple[str, str]] = {}
    started: dict[str, float] = {}
    took: dict[str, float] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        note = json.loads(line)
        took[note["id"]] = note["at"] - started.setdefault(note["id"], note["at"])
        if outcomes.get(note["id"], ("",))[0] not in ("failed", "error"):  # the first error counts
            outcomes[note["id"]] = note["outcome"], note["why"]
    return outcomes, took


def differences(without: Run, recorded: Run) -> list[str]:
    """Return the methods that ended differently."""
    tests = dict.fromkeys([*without.outcomes, *recorded.outcomes])
    return [test for test in tests if without.ended(test) != recorded.ended(test)]


def judge(python: Interpreter, module: str, seconds: float) -> bool:
    """Run one module both ways and print what differs; return whether all is as it must be."""
    present = module if python.has(module) else FALLBACKS.get(module, "")
    if not present:
        print(f"{python.version}  {module}: did not come with this Python", flush=True)
        return True
    without, recorded = (python.run([present], seconds, recorded=way) for way in (False, True))
    if unfinished := [test for test in without.outcomes if without.ended(test) == "did not finish"]:
        print(f"{python.version}  {module}: not judged, without us {unfinished[0]} did not finish")
        return False
    differing = differences(without, recorded)
    unsteady = [test for test in differing if _ends_alike_again(python, test, seconds)]
    real = [test for test in differing if test not in unsteady]
    refused = [test for test in real if not reason(test)]
    if without.status != recorded.status and not differing:
        refused.append(f"exit status {without.status}, recorded {recorded.status}")
    bad = sum(outcome in ("failed", "error") for outcome, _ in without.outcomes.values())
    print(
        f"{python.version}  {module}: {len(without.outcomes)} methods ({bad} fail without us), "
        f"{'same' if not refused else f'{len(refused)} differ'}"
        f"  [{without.seconds:.0f} s, recorded {recorded.seconds:.0f} s]",
        flush=True,
    )
    for test in unsteady:
        print(f"    unsteady  {test}: {without.why(test)} | recorded: {recorded.why(test)}")
    for test in real:
        print(f"    {'allowed ' if reason(test) else 'DIFFERS '}  {test}")
        print(f"      without:  {without.why(test)}\n      recorded: {recorded.why(test)}")
        if reason(test):
            print(f"      because:  {reason(test)}")
    for test in refused[len(real) :] if not real else ():
        print(f"    DIFFERS   {test}")
    if refused and recorded.status not in (0, 1):
        print("\n".join(f"      | {line}" for line in recorded.output.splitlines()[-TAIL:]))
    for test, took in recorded.took.items():
        before = without.took.get(test, 0.0)
        if took > before + SLOWER:
            print(f"    slower    {test}: {before:.1f} s | recorded: {took:.1f} s")
    sys.stdout.flush()
    return not refused


def _ends_alike_again(python: Interpreter, test: str, seconds: float) -> bool:
    """Run one method by itself both ways, up to twice; return whether it ever ends alike."""
    if " " in test:  # setUpModule (...)
        return False
    for _ in range(2):
        without, recorded = (python.run([test], seconds, recorded=way) for way in (False, True))
        if test in without.outcomes and not differences(without, recorded):
            return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="PATH", help="default: this one")
    parser.add_argument("--module", action="append", metavar="NAME", help="as test_queue")
    parser.add_argument("--slow", action="store_true", help="also multiprocessing: many minutes")
    parser.add_argument("--seconds", type=float, default=900.0, help="given to a module")
    options = parser.parse_args()
    known = [*MODULES, *SLOW]
    modules = [*MODULES, *(SLOW if options.slow else ())]
    if options.module:
        modules = [
            next((m for m in known if name in (m, m.partition(".")[2], m.rpartition(".")[2])), name)
            for name in options.module
        ]
    good = [
        judge(python, module, options.seconds)
        for python in map(Interpreter.at, options.python or [sys.executable])
        for module in modules
    ]
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
