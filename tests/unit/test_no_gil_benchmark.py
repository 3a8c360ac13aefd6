"""The script that holds predictions without the GIL against a free-threaded build, without one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

PATH = Path(__file__).parents[1] / "benchmarks" / "no_gil.py"
FREE_THREADED = "#!/bin/sh\necho gil False\n"
"""An interpreter that says that it has no GIL, and nothing else."""


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("no_gil", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpreter(folder: Path, text: str, name: str = "python3.14t") -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def run(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    *words: str,
) -> int:
    monkeypatch.setattr(sys, "argv", ["no_gil.py", *words])
    return int(script.main())


def test_where_no_such_interpreter_is_it_says_so_and_ends_well(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interpreter(tmp_path, "#!/bin/sh\nexit 0\n")  # a program that takes anything is none
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))

    assert run(script, monkeypatch) == 0
    assert capsys.readouterr().out.startswith("skipped: no free-threaded Python")


def test_the_first_interpreter_without_a_gil_is_found_in_path(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = interpreter(tmp_path, FREE_THREADED)
    interpreter(tmp_path, "#!/bin/sh\necho gil True\n", "python3")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert next(script.free_threaded()) == found


def test_an_interpreter_that_has_a_gil_is_refused(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_one = interpreter(tmp_path, "#!/bin/sh\necho gil True\n")

    with pytest.raises(SystemExit) as ended:
        run(script, monkeypatch, "--python", has_one)
    assert ended.value.code == 2


def answers(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict twice as fast with two threads without the GIL, and as fast with it."""

    def tool(*words: str) -> str:
        if words[0] == "record":
            return ""
        shorter = 2.0 if "--no-gil" in words else 1.0
        points = [
            {"threads": 1, "time_s": 1.0, "limiting_lock": None, "limited_by": "threads"},
            {"threads": 2, "time_s": 1.0 / shorter, "limiting_lock": "L", "limited_by": "lock"},
        ]
        return json.dumps({"as_recorded": points})

    monkeypatch.setattr(script, "_tool", tool)


def test_errors_are_relative_to_one_thread_and_told_apart_from_the_control(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    python = interpreter(tmp_path, FREE_THREADED)
    answers(script, monkeypatch)

    def batch(used: str, _case: str, threads: int, environment: dict[str, str]) -> float:
        assert environment["PYTHON_GIL"] == ("0" if used == python else "1")
        return 3.0 / threads if used == python else 4.0

    monkeypatch.setattr(script, "batch_s", batch)

    words = ("--python", python, "--threads", "2", "--only", "native", "--runs", "2")
    assert run(script, monkeypatch, *words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert "no GIL,  2 threads: predicted  2.00 times as fast as one, measured  2.00" in lines[3]
    assert "limited by L" in lines[3]
    assert lines[4].startswith("median error 0.0%")
    assert "control" in lines[4]
    assert lines[5].endswith(f"with {python}")

    assert run(script, monkeypatch, *words, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["gil"], row["threads"]) for row in rows] == [
        (True, 1),
        (True, 2),
        (False, 1),
        (False, 2),
    ]


def test_a_program_that_fails_there_is_told_in_one_line(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = interpreter(tmp_path, "#!/bin/sh\necho no zlib here >&2\nexit 3\n")

    with pytest.raises(SystemExit, match=r"fixable\.py native none 2 ended with 3: no zlib here"):
        script.batch_s(python, "native", 2, script.FREE)
