"""What the start of `record` loads: every module of ours delays the program's first line."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "not_needed"),
    [
        ("launch", {"native", "native._core", "capture.companion", "capture.unrecorded"}),
        ("bootstrap", {"capture.children", "capture.launch", "capture.unrecorded"}),
    ],
)
def test_a_start_loads_nothing_that_only_options_need(module: str, not_needed: set[str]) -> None:
    code = f"import sys, contention_lab.capture.{module}; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = {name.removeprefix("contention_lab.") for name in done.stdout.split()}
    assert f"capture.{module}" in loaded
    assert not loaded & not_needed
