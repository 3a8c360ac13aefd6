"""What the system shows of a recorded process's environment is what it would be without us."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from layer_programs import needs_compiler, needs_layer

import contention_lab as cl

pytestmark = [needs_layer]
HOME = str(Path(cl.__path__[0]).parent)
SHOWS = "import os, sys; sys.stdout.write(open('/proc/self/environ').read())"
SHOWS_C = """
#include <stdio.h>
int main(void)
{
    FILE *file = fopen("/proc/self/environ", "r");
    for (int c; (c = getc(file)) != EOF;) { putchar(c); }
    return 0;
}
"""
RECORD = [sys.executable, "-m", "contention_lab", "record", "-q", "-o", "run.clt"]
CASES = [{}, {"LD_PRELOAD": "libm.so.6"}, {"LD_PRELOAD": ""}]


def shown(folder: Path, command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def without_gaps(text: str) -> list[str]:
    """Return the variables, which nothing but empty room may follow."""
    pairs = text.rstrip("\0").split("\0")
    assert "" not in pairs
    return sorted(pairs)


@pytest.mark.parametrize("preload", CASES)
@pytest.mark.parametrize("path", [HOME, f"{HOME}:/nowhere"])
@pytest.mark.parametrize("options", [(), ("--subprocesses",), ("--no-native-layer",)])
def test_of_a_python(
    preload: dict[str, str], path: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    before = {"A": "1", "PYTHONPATH": path, **preload, "PATH": os.environ["PATH"], "Z": "2"}

    plain = shown(tmp_path, [sys.executable, "-c", SHOWS], before)
    recorded = shown(tmp_path, [*RECORD, *options, "-c", SHOWS], before)

    assert without_gaps(recorded) == without_gaps(plain)


def test_of_a_python_without_a_path_of_its_own(tmp_path: Path) -> None:
    start = tmp_path / "start.py"
    start.write_text(
        f"import sys; sys.path.insert(0, {HOME!r}); from contention_lab.cli import main; main()"
    )
    before = {"PATH": os.environ["PATH"]}

    plain = shown(tmp_path, [sys.executable, "-c", SHOWS], before)
    recorded = shown(tmp_path, [sys.executable, str(start), "record", "-q", "-c", SHOWS], before)

    assert without_gaps(recorded) == without_gaps(plain)


@needs_compiler
@pytest.mark.parametrize("preload", CASES)
def test_of_another_program(preload: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(SHOWS_C)
    subprocess.run(["cc", "program.c", "-o", "program"], cwd=tmp_path, check=True)
    before = {"A": "1", "PYTHONPATH": HOME, **preload, "PATH": os.environ["PATH"], "Z": "2"}

    plain = shown(tmp_path, ["./program"], before)
    recorded = shown(tmp_path, [*RECORD, "--", "./program"], before)

    assert without_gaps(recorded) == without_gaps(plain)


def test_of_a_child_that_is_recorded(tmp_path: Path) -> None:
    starts = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOWS!r}], check=True)"
    )
    before = {"A": "1", "PYTHONPATH": HOME, "PATH": os.environ["PATH"]}

    plain = shown(tmp_path, [sys.executable, "-c", starts], before)
    recorded = shown(tmp_path, [*RECORD, "--subprocesses", "-c", starts], before)

    # There the program's own variables may come after ours, and stay where they are.
    assert sorted(filter(None, recorded.split("\0"))) == without_gaps(plain)
