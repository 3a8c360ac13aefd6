"""Running tests with and without a recording, and judging what ends differently.

What the tests are and how they are run is said by `cpython.py` and `third_party.py`. A test that
ends differently once is not believed: it is run again, both ways, by itself and, where
that settles nothing, with the whole that it is a part of. A difference is steady if the
test always ended the same way without us, and at least twice differently when recorded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
ENDING = "(how the process ends)"
"""Stands beside the tests, and means that the process crashes, hangs or is killed."""
DID_NOT_RUN = "did not run"
SLOWER = 5.0
"""Seconds more that a test takes recorded which are worth a line: it may have waited in vain."""
TAIL = 40
"""Lines shown of what a run printed that did not end by itself."""
AGAIN = 2
"""Times that tests which ended differently are run again, both ways, by themselves."""
MANY = 50
"""More tests than that are not run again by themselves."""

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@dataclass(frozen=True, slots=True)
class Run:
    """How tests ended: for each its outcome and why; and the process they ran in."""

    outcomes: dict[str, tuple[str, str]]
    took: dict[str, float]
    status: int
    seconds: float
    output: str

    def ended(self, test: str) -> str:
        """Return how a test ended, in a word."""
        return self.outcomes.get(test, (DID_NOT_RUN, ""))[0]

    def why(self, test: str) -> str:
        """Return how a test ended, in a line."""
        return ": ".join(filter(None, self.outcomes.get(test, (DID_NOT_RUN, ""))))


@dataclass(frozen=True, slots=True)
class Pair:
    """The same tests without us and recorded."""

    without: Run
    recorded: Run

    def differing(self) -> list[str]:
        """Return the tests that ended differently."""
        tests = dict.fromkeys([*self.without.outcomes, *self.recorded.outcomes])
        return [test for test in tests if self.differs(test)]

    def differs(self, test: str) -> bool:
        """Return whether a test ended differently."""
        return self.without.ended(test) != self.recorded.ended(test)

    def has(self, test: str) -> bool:
        """Return whether a test was run at all."""
        return test in self.without.outcomes or test in self.recorded.outcomes


class Tests(Protocol):
    """Tests that can be run as a whole, or some of them by name."""

    @property
    def label(self) -> str:
        """What a line about them begins with."""

    def run(self, names: list[str], *, recorded: bool) -> Run:
        """Run tests in a process of their own; all of them if none is named."""

    def can_run_alone(self, test: str) -> bool:
        """Return whether a test may be named to `run`."""


@dataclass(slots=True)
class Comparison:
    """All the pairs of runs of some tests."""

    tests: Tests
    pairs: list[Pair] = field(default_factory=list)

    def run(self, names: list[str]) -> Pair:
        """Run tests both ways."""
        without, recorded = (self.tests.run(names, recorded=way) for way in (False, True))
        self.pairs.append(Pair(without, recorded))
        return self.pairs[-1]

    def repeat(self) -> tuple[list[str], list[str]]:
        """Run again what ended differently; return what differs steadily, and what does not."""
        differing = self.pairs[0].differing()
        alone = [test for test in differing if self.tests.can_run_alone(test)]
        if len(alone) > MANY:
            alone = []
        for _ in range(AGAIN if differing else 0):
            self.run(alone)
        if alone and any(self.times(test)[0] < 2 for test in differing):
            self.run([])
        steady = [test for test in differing if self.is_steady(test)]
        return steady, [test for test in differing if test not in steady]

    def is_steady(self, test: str) -> bool:
        """Return whether a test always ends the same way without us, and not so if recorded."""
        ends = {pair.without.ended(test) for pair in self.pairs if pair.has(test)}
        differently, ran = self.times(test)
        return len(ends) == 1 and differently >= min(2, ran)

    def times(self, test: str) -> tuple[int, int]:
        """Return how often a test ended differently, and how often it ran."""
        pairs = [pair for pair in self.pairs if pair.has(test)]
        return sum(pair.differs(test) for pair in pairs), len(pairs)


def judge(tests: Tests, reason: Callable[[str], str]) -> bool:
    """Run tests both ways and print what differs; return whether all is as it must be.

    Parameters
    ----------
    tests
        What to run.
    reason
        Gives the reason why a test may end differently, or nothing.
    """
    comparison = Comparison(tests)
    first = comparison.run([])
    without, recorded = first.without, first.recorded
    if why_not := _why_no_measure(without):
        print(f"{tests.label}: not judged, without us {why_not}\n{_tail(without)}", flush=True)
        return False
    steady, unsteady = comparison.repeat()
    refused = [test for test in steady if not reason(test)]
    bad = sum(outcome in ("failed", "error") for outcome, _ in without.outcomes.values())
    print(
        f"{tests.label}: {len(without.outcomes) - 1} tests ({bad} fail without us), "
        f"{f'{len(refused)} differ' if refused else 'same'}"
        f"  [{without.seconds:.0f} s, recorded {recorded.seconds:.0f} s]"
    )
    for test in unsteady:
        print(f"    unsteady  {test}, {_times(comparison, test)}")
        _explain(comparison, test)
    for test in steady:
        why = reason(test)
        print(f"    {'allowed ' if why else 'DIFFERS '}  {test}, {_times(comparison, test)}")
        _explain(comparison, test)
        if why:
            print(f"      because:  {why}")
    if refused and recorded.ended(ENDING) != without.ended(ENDING):
        print(_tail(recorded))
    for test, took in recorded.took.items():
        before = without.took.get(test, 0.0)
        if took > before + SLOWER:
            print(f"    slower    {test}: {before:.1f} s | recorded: {took:.1f} s")
    sys.stdout.flush()
    return not refused


def run_process(command: list[str], folder: Path, seconds: float, env: dict[str, str]) -> int:
    """Run a command in a session of its own; end it, and what it left running.

    Its output goes to the file `output` in the folder. Returns its status; after `seconds` it is
    killed. A shell that starts this in the background has it ignore SIGINT, which tests send: the
    command does not inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with (
        (folder / "output").open("wb") as output,
        subprocess.Popen(
            command,
            cwd=folder,
            env=env,
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
            os.killpg(process.pid, signal.SIGKILL)
    return status


def read_run(notes: Path, status: int, seconds: float, output: Path) -> Run:
    """Read what a process noted about its tests: a JSON object in each line."""
    outcomes: dict[str, tuple[str, str]] = {}
    started: dict[str, float] = {}
    took: dict[str, float] = {}
    for line in notes.read_text().splitlines() if notes.exists() else ():
        note = json.loads(line)
        note["id"] = _ADDRESS.sub("0x", note["id"])
        took[note["id"]] = note["at"] - started.setdefault(note["id"], note["at"])
        if outcomes.get(note["id"], ("",))[0] not in ("failed", "error"):  # the first error counts
            outcomes[note["id"]] = note["outcome"], note["why"]
    outcomes[ENDING] = ("by itself" if status in (0, 1) else f"with status {status}"), ""
    return Run(outcomes, took, status, seconds, output.read_text(errors="replace"))


def version_of(python: str) -> str:
    """Ask a Python for its version; end the program if it has no core to record with."""
    code = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); import platform; "
        "import contention_lab.native._core; print(platform.python_version())"
    )
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"{python}: {error.strerror}")
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:]
        sys.exit(
            f"{python}: cannot record: {''.join(why)}\n"
            f"Build the core for it first: {python} -m pip install -e {CHECKOUT}"
        )
    return done.stdout.strip()


def now() -> float:
    """Return seconds of a clock that does not jump."""
    return time.monotonic()


def _times(comparison: Comparison, test: str) -> str:
    differently, ran = comparison.times(test)
    return f"{differently} of {ran} times:"


def _why_no_measure(without: Run) -> str:
    """Return why a run without us is nothing to judge by, if it is not."""
    unfinished = [test for test in without.outcomes if without.ended(test) == "did not finish"]
    if unfinished:
        return f"{unfinished[0]} did not finish"
    if without.status not in (0, 1):
        return f"it ended with status {without.status}"
    ends = {outcome for test, (outcome, _) in without.outcomes.items() if test != ENDING}
    if not ends:
        return "no test ran"
    return "every test failed" if ends <= {"failed", "error"} else ""


def _explain(comparison: Comparison, test: str) -> None:
    pair = next(pair for pair in comparison.pairs if pair.differs(test))
    print(f"      without:  {pair.without.why(test)}\n      recorded: {pair.recorded.why(test)}")


def _tail(run: Run) -> str:
    return "\n".join(f"      | {line}" for line in run.output.splitlines()[-TAIL:])
