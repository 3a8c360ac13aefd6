"""The commands of the README exist, with the options and scenarios it names."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

from contention_lab.cli import COMMANDS
from contention_lab.sweep.catalogue import shipped_names

README = Path(__file__).parents[2] / "README.md"
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]'"


def commands_typed() -> list[list[str]]:
    """Return the words after `contention-lab` of every command in a code block of the README."""
    typed = []
    for block in re.findall(r"^```(?:sh|bash|console|shell)?\n(.*?)^```", text(), re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"[\w.#]", line):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                for place, word in enumerate(words):
                    if word.rsplit("/", 1)[-1] == "contention-lab":
                        typed.append(until_the_next(words[place + 1 :]))
    return typed


def text() -> str:
    return README.read_text(encoding="utf-8")


def until_the_next(words: list[str]) -> list[str]:
    ends = [place for place, word in enumerate(words) if word in {"&&", "||", "|", ";"}]
    return words[: ends[0]] if ends else words


def test_the_readme_shows_both_ways_in() -> None:
    for command in ("contention-lab run autodiff-global-spinlock", "pytest"):
        assert f"{INSTALL} && .venv/bin/{command}" in text()


def test_every_command_of_the_readme_exists() -> None:
    typed = commands_typed()

    assert ["run", "autodiff-global-spinlock"] in typed
    for words in typed:
        assert words[0] in (*COMMANDS, "--version", "--help"), words


@pytest.mark.parametrize("words", commands_typed() if README.exists() else [], ids=" ".join)
def test_a_command_of_the_readme_has_the_options_it_is_given(words: list[str]) -> None:
    if words[0].startswith("--"):
        return
    command = import_module(f"contention_lab.cli.{words[0]}").command
    assert isinstance(command, click.Command)
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    for word in words[1:]:
        if re.match(r"--?[a-z]", word):
            assert word.split("=")[0] in options, words
    if words[0] == "run" and not words[1].endswith(".toml"):
        assert words[1] in shipped_names()
