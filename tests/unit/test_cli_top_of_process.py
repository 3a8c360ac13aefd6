"""`top PID`: what is left on the terminal when the process ends, or the table is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from sampled_scene import ASLEEP, HOLDS, RUNS, TAKES, built

from contention_lab.cli.failure import ended_by_signals
from contention_lab.cli.sampled_table import watch
from contention_lab.sampling import attachment, refusal

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.trace import TraceBuilder

NOBODY = 2**31 - 2
"""No process has this number."""


def test_it_says_that_the_process_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = [[(HOLDS, RUNS, 0), (TAKES, ASLEEP, 8)]] * 30
    answers = [built(tmp_path, moments), refusal.ended(NOBODY)]

    def attach(*_: object, **__: object) -> TraceBuilder:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(attachment, "check", lambda pid: "3.11.7")
    monkeypatch.setattr(attachment, "attach", attach)

    watch(NOBODY, 20)

    shown = capsys.readouterr()
    assert "Pool._lock" in shown.out
    assert shown.err == f"process {NOBODY} has ended\n"


def test_what_is_open_is_closed_when_a_signal_ends_a_command() -> None:
    before = signal.getsignal(signal.SIGTERM)
    closed = []

    def work() -> None:
        with ended_by_signals():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                closed.append(True)

    with pytest.raises(SystemExit) as ended:
        work()

    assert ended.value.code == 128 + signal.SIGTERM
    assert closed == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_ends_a_command_also_if_its_exception_is_passed_over() -> None:
    looked = []

    def work() -> None:
        with ended_by_signals() as goes_on:
            while goes_on() and len(looked) < 3:
                looked.append(True)
                with suppress(SystemExit):
                    os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as ended:
        work()

    assert ended.value.code == 128 + signal.SIGTERM
    assert looked == [True]


def test_a_signal_ends_a_command_also_if_its_exception_becomes_another() -> None:
    def work() -> None:
        with ended_by_signals():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except SystemExit:
                raise RuntimeError("an import was interrupted") from None

    with pytest.raises(SystemExit) as ended:
        work()

    assert ended.value.code == 128 + signal.SIGTERM


def test_an_error_within_is_not_taken_for_a_signal() -> None:
    with pytest.raises(RuntimeError, match="ours"), ended_by_signals():
        raise RuntimeError("ours")


def test_a_table_needs_no_drawing() -> None:
    code = (
        "import sys, contention_lab.cli.top, contention_lab.cli.sampled_table\n"
        "import contention_lab.report.quantity\n"
        "sys.exit('matplotlib' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
