"""Style and script of the page: nothing in them that nothing uses."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import contention_lab.report as report
from contention_lab.report.document import SCRIPTS, STYLES
from contention_lab.report.palette import LIGHT, theme_css

HOME = Path(report.__file__).parent
STYLE = {file: (HOME / "static" / file).read_text("utf-8") for file in STYLES}
SCRIPT = {file: (HOME / "static" / file).read_text("utf-8") for file in SCRIPTS}
TEMPLATES = "\n".join(path.read_text("utf-8") for path in sorted(HOME.glob("templates/*.html")))
MAKERS = TEMPLATES + "\n".join(SCRIPT.values())
MAKERS += "\n".join(path.read_text("utf-8") for path in sorted(HOME.glob("*.py")))
NUMBERED = {"heat": 7, "in": 12}
"""Classes that templates write with a number, and the highest one."""
CODE = re.sub(r"^\s*//.*$", "", "\n".join(SCRIPT.values()), flags=re.MULTILINE)
DECLARED = re.compile(
    r"^(?:async )?function\*? (\w+)|^class (\w+)|^const (\w+) =|^let (\w+) =|"
    r"^  (?:static |async |get |set )*\*?(#?\w+)\([^)]*\) \{",
    re.MULTILINE,
)
CALLED_BY_BROWSERS = {"constructor", "catch", "if", "for", "while", "switch"}


def selectors(style: str) -> list[str]:
    rules = re.sub(r"@media[^{]*\{", "", style)
    return [part for head in re.findall(r"([^{}]+)\{[^{}]*\}", rules) for part in head.split(",")]


@pytest.mark.parametrize("file", STYLES)
def test_every_class_and_id_of_a_style_is_made_somewhere(file: str) -> None:
    unused = set()
    for selector in selectors(STYLE[file]):
        for mark, word in re.findall(r"([.#])([A-Za-z][\w-]*)", selector):
            base, _, number = word.rpartition("-")
            if base in NUMBERED and number.isdigit():
                assert int(number) <= NUMBERED[base]
                continue
            word = word[2:] if word[0] in "fsb" and word[2:] in LIGHT else word  # by its role
            if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", MAKERS):
                unused.add(mark + word)

    assert unused == set()


@pytest.mark.parametrize("file", STYLES)
def test_every_element_and_attribute_of_a_style_is_made_somewhere(file: str) -> None:
    unused = set()
    for selector in selectors(STYLE[file]):
        bare = re.sub(r"\[[^\]]*\]|::?[\w-]+|[.#][\w-]+", " ", selector)
        unused |= {
            word
            for word in re.findall(r"[a-z][a-z0-9]*", bare)
            if not re.search(rf"<{word}\b|\"{word}\"", MAKERS)
        }
        for name in re.findall(r"\[([\w-]+)", selector):
            if name not in MAKERS and name.removeprefix("aria-") not in MAKERS:
                unused.add(name)

    assert unused == set()


def test_every_variable_of_a_style_is_read_somewhere() -> None:
    style = theme_css() + "".join(STYLE.values())
    set_ = set(re.findall(r"(?<![\w(-])(--[\w-]+):", style))
    read = set(re.findall(r"var\((--[\w-]+)", style))
    named = set(re.findall(r'"([a-z]+(?:-[a-z0-9]+)*)"', CODE))

    assert {one for one in set_ - read if one[2:] not in named} == set()


def test_every_function_class_and_constant_of_the_script_is_used() -> None:
    names = Counter(re.findall(r"#?[A-Za-z_]\w*", CODE))
    declared = [name for found in DECLARED.findall(CODE) for name in found if name]

    assert len(declared) > 200
    assert [n for n in declared if names[n] < 2 and n not in CALLED_BY_BROWSERS] == []


def test_every_field_of_an_object_is_read_somewhere() -> None:
    written = Counter(re.findall(r"this\.(#?\w+)(?= = )", CODE))
    named = Counter(re.findall(r"(?<![\w#])#?[A-Za-z_]\w*", CODE))

    assert sorted(name for name in written if named[name] <= written[name]) == []
