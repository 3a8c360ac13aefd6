"""A pytest plugin: writes what became of every test to a file, as it happens.

`third_party.py` puts it into a suite's environment. The lines are those of `outcomes.py`, so that
the file also tells which test a killed or hanging run was in.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--outcomes", metavar="FILE")


def pytest_configure(config: Any) -> None:
    path = config.getoption("--outcomes")
    if path:
        config.pluginmanager.register(_Notes(path), "outcome notes")


class _Notes:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._pid = os.getpid()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._note(report.nodeid, "error", str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note(nodeid, "did not finish")

    def pytest_runtest_logreport(self, report: Any) -> None:
        expected = hasattr(report, "wasxfail")
        if report.failed:
            outcome = "failed" if report.when == "call" else "error"
            self._note(report.nodeid, outcome, _line(report))
        elif report.skipped:
            self._note(report.nodeid, "failed as expected" if expected else "skipped")
        elif report.when == "call":
            self._note(report.nodeid, "unexpectedly ok" if expected else "ok")

    def _note(self, test: str, outcome: str, why: str = "") -> None:
        if os.getpid() == self._pid:  # a forked child that a test let go on has no say
            why = why.strip().replace("\n", " ")[-300:]
            note = {"id": test, "outcome": outcome, "why": why, "at": time.monotonic()}
            os.write(self._fd, json.dumps(note).encode() + b"\n")


def _line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(report.longrepr) if crash is None else str(crash.message)
