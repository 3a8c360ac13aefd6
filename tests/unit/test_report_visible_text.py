"""Hostile names lose what cannot be seen, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contention_lab.report.visible_text import NAME_LIMIT, name, short_path, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nul\x00", r"nul\u0000"),
        ("over\u202eride", r"over\u202eride"),
        ("lone \ud83d", r"lone \ud83d"),
        ("a\nb\tc", r"a\u000ab\u0009c"),
        ("tag \U000e0041", r"tag \U000e0041"),
    ],
)
def test_characters_without_a_shape_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["🔒", "👩‍💻 e\u0301", "שלום", "</script>", "Client.<locals>.run"])
def test_everything_that_has_a_shape_stays(text: str) -> None:
    assert visible(text) == text


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_what_is_shown_can_be_encoded_and_holds_no_control_character(text: str) -> None:
    shown = visible(text)

    shown.encode()
    assert not any(ord(character) < 32 for character in shown)


def test_a_long_name_keeps_its_ends_and_tells_its_length() -> None:
    shown = name("begin" + "x" * 10_000 + "end")

    assert shown.startswith("beginx")
    assert "xend (10,008 characters)" in shown
    assert len(shown) < NAME_LIMIT + 40


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/opt/venv/lib/python3.11/site-packages/numpy/core/fromnumeric.py",
         "numpy/core/fromnumeric.py"),
        ("/usr/lib/python3.11/threading.py", "threading.py"),
        ("/srv/a/b/c/d.py", "b/c/d.py"),
        ("C:\\srv\\a\\b.py", "srv/a/b.py"),
        ("x.py", "x.py"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_path_is_cut_to_what_tells_files_apart(path: str, shown: str) -> None:
    assert short_path(path) == shown
