"""What `record` says at once of what it cannot run or record, and with which exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import contention_lab as cl
from contention_lab.capture.refusal import refusal

ELF = b"\x7fELF\x02\x01"


def put(folder: Path, name: str, content: bytes, mode: int = 0o644) -> str:
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "mode", "said", "status"),
    [
        ("run.sh", b"#!/bin/sh\nexit 3\n", 0o755, "a script for sh, neither Python nor", 1),
        ("run", b"#!/usr/bin/env -S bash -e\n", 0o755, "a script for bash, neither", 1),
        ("run.sh", b"exit 3\n", 0o644, "a script for sh, neither Python nor", 126),
        ("tool", b"#!/usr/bin/perl\n", 0o644, "a script for perl, neither Python", 126),
        ("x.c", b"int main(void) { return 0; }\n", 0o644, "source code: record the program", 126),
        ("x.rs", b"fn main() {}\n", 0o755, "source code: record the program that is built", 126),
        ("program", ELF, 0o644, "Permission denied: make it executable, chmod +x", 126),
    ],
)
def test_what_is_no_program_of_its_kind_is_said(
    name: str, content: bytes, mode: int, said: str, status: int, tmp_path: Path
) -> None:
    path = put(tmp_path, name, content, mode)

    found = refusal([path, "argument"])

    assert found is not None
    assert found[0].startswith(f"{path}: {said}")
    assert found[1] == status


@pytest.mark.parametrize(
    ("name", "content", "mode"),
    [
        ("train", b"print(1)\n", 0o644),
        ("train", b"#!/usr/bin/env python3\nprint(1)\n", 0o755),
        ("train", b"#!/usr/bin/env -S uv run --script\nprint(1)\n", 0o755),
        ("train.py", b"#!/bin/sh\n", 0o755),
        ("program", ELF, 0o755),
    ],
)
def test_python_and_programs_are_run(name: str, content: bytes, mode: int, tmp_path: Path) -> None:
    assert refusal([put(tmp_path, name, content, mode)]) is None


@pytest.mark.parametrize("words", [[], ["-"], ["-c", "1"], ["-m", "nowhere"], ["nowhere.py"]])
def test_what_python_says_by_itself_is_left_to_it(words: list[str]) -> None:
    assert refusal(words) is None


def test_a_folder_is_left_to_python_too(tmp_path: Path) -> None:
    assert refusal([str(tmp_path)]) is None


def test_what_is_not_there_is_looked_for_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = put(tmp_path, "a-tool", ELF, 0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert refusal(["./a-tool-not"]) == ("./a-tool-not: there is no such file", 127)
    assert refusal(["a-tool"]) == (
        f"a-tool: there is no such file: a program on PATH is given with its path, {tool}",
        127,
    )
    assert refusal([f"{tool}/below"]) == (f"{tool}/below: Not a directory", 126)


@pytest.mark.parametrize("options", [(), ("--level=profile",)])
def test_the_line_and_the_status_reach_the_shell(options: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", *options, "--", "./missing"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 127
    assert done.stderr == "contention-lab: ./missing: there is no such file\n"
    assert not list(tmp_path.iterdir())
