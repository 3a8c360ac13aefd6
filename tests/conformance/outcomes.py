"""Run unittest modules and write the outcome of every test method to a file, as it happens.

`python outcomes.py FILE SECONDS NAME...`: one JSON line when a method starts and one when it has
ended, so that the file also tells which method a killed or hanging run was in. After SECONDS the
stacks of all threads are printed and the process ends. Modules of the package `test` are also
looked for in the folder MORE_TESTS, and in the processes that multiprocessing starts as well.
Started by `cpython.py`, recorded or not.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import unittest
from typing import Any

import test
from allowed import is_left_out

if "MORE_TESTS" in os.environ:
    test.__path__.append(os.environ["MORE_TESTS"])


class Result(unittest.TextTestResult):
    """What became of each method."""

    fd = -1
    pid = 0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.note(test, "did not finish")

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.note(test, "ok")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.note(test, "failed", _line(err))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.note(test, "error", _line(err))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self.note(test, "failed as expected")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self.note(test, "unexpectedly ok")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed", f"{subtest._subDescription()}: {_line(err)}")  # type: ignore[attr-defined]

    def note(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        if os.getpid() == self.pid:  # a forked child that a test let go on has no say
            now = time.monotonic()
            line = json.dumps({"id": test.id(), "outcome": outcome, "why": why, "at": now})
            os.write(self.fd, line.encode() + b"\n")


def _line(err: Any) -> str:
    return f"{err[0].__name__}: {err[1]}".strip().replace("\n", " ")[:300]


def _without_those_left_out(suite: unittest.TestSuite) -> unittest.TestSuite:
    """Take tests out of a suite; it keeps its form, which says what is set up for whom."""
    tests: list[unittest.TestSuite | unittest.TestCase] = []
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            tests.append(_without_those_left_out(each))
        elif not is_left_out(each.id()):
            tests.append(each)
    return type(suite)(tests)


def main() -> int:
    path, seconds, *names = sys.argv[1:]
    del sys.argv[1:]
    Result.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    Result.pid = os.getpid()
    faulthandler.dump_traceback_later(float(seconds), exit=True)
    suite = _without_those_left_out(unittest.defaultTestLoader.loadTestsFromNames(names))
    runner = unittest.TextTestRunner(verbosity=2)
    runner.resultclass = Result  # type: ignore[assignment]
    result = runner.run(suite)
    faulthandler.cancel_dump_traceback_later()
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
