"""What the command line answers to what was typed: status, stream, and number of lines."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from contention_lab.cli import COMMANDS, main

CLI = Path(str(import_module("contention_lab.cli").__file__)).parent
HEAVY = ("numpy", "scipy", "matplotlib", "jinja2", "rich", "threadpoolctl")


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["lst"], 2, "no command 'lst'; did you mean 'list'? (try: contention-lab --help)"),
        (["doctor", "--jsn"], 2, "Did you mean '--json'? (try: contention-lab doctor --help)"),
        (["run"], 2, "Missing argument 'SCENARIO'"),
        (["run", "autodiff-global-mutx"], 1, "did you mean 'autodiff-global-mutex'?"),
        (["run", "nowhere/x.toml"], 1, "nowhere/x.toml: No such file"),
        (["run", "autodiff-global-mutex", "--threads", "x"], 1, "--threads 'x': give whole"),
        (["run", "autodiff-global-mutex", "--set", "stps=1"], 1, "did you mean 'steps'?"),
        (["run", "autodiff-global-mutex", "--repeats", "x"], 2, "--repeats 'x': give a whole"),
        (
            ["record", "--watch", "abc", "x.py"],
            2,
            "--watch 'abc': give a number of seconds from 0.1 to 1,000,000 "
            "(try: contention-lab record --help)",
        ),
        (["record", "--watch", "nan", "x.py"], 2, "--watch 'nan': give a number of seconds"),
        (["record", "--watch=0.01", "x.py"], 2, "--watch '0.01': give a number of seconds"),
        (
            ["record", "--functions", "--function-entries", "7", "x.py"],
            2,
            "--function-entries '7': give a whole number from 1,000 to 100,000,000",
        ),
        (["attach", "x"], 2, "PID 'x': give a whole number from 1 (try:"),
        (["top", "-n", "0", "x.clt"], 2, "--rows '0': give a whole number from 1 (try:"),
        (["fit", "--cores", "1e", "x.csv"], 2, "--cores '1e': give a number from 1 (try:"),
    ],
)
def test_a_mistake_is_one_line_on_stderr(
    arguments: list[str], status: int, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status

    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err
    assert captured.err.startswith("contention-lab: ")
    assert captured.err.count("\n") == 1


def test_nothing_typed_shows_the_help_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: contention-lab" in captured.err


def test_the_registry_names_every_command_module_and_no_other() -> None:
    defining = {
        path.stem
        for path in CLI.glob("*.py")
        if any(
            isinstance(node, ast.FunctionDef) and node.name == "command"
            for node in ast.parse(path.read_text()).body
        )
    }

    assert defining == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_its_modules_docstring(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"contention_lab.cli.{name}")
    assert module.__doc__

    assert main([name, "--help"]) == 0

    shown = capsys.readouterr().out.split()
    promised = module.__doc__.replace("\b", "").split()
    assert any(shown[start : start + len(promised)] == promised for start in range(len(shown)))


@pytest.mark.parametrize("typed", ["--help", "--version", "list", "run --help"])
def test_quick_answers_do_not_load_heavy_packages(typed: str) -> None:
    script = (
        "import sys\n"
        "from contention_lab.cli import main\n"
        f"assert main({typed.split()!r}) == 0\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)\n"
    )

    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert answer.stderr == "\n"
    assert answer.stdout


def test_list_prints_one_line_per_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 8
    assert any(line.startswith("autodiff-global-spinlock ") for line in lines)


def test_doctor_says_in_json_what_its_table_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert main(["doctor"]) == 0
    table = capsys.readouterr().out

    assert facts["machine"]["cores"] >= 1
    assert facts["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    for topic in ("cores", "clock source", "GIL", "ptrace", "BLAS", "compiler", "load", "numpy"):
        assert f"\n{topic} " in table
    assert facts["versions"]["numpy"] in table
