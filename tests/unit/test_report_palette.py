"""Colours: told apart by every reader, and legible in both themes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from contention_lab.report.palette import DARK, LIGHT, SAMPLED_STATES, STATES, theme_css

# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ rgb / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted((float(weights @ linear(one)), float(weights @ linear(other))))
    return (high + 0.05) / (low + 0.05)


@THEMES
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_states_are_told_apart_by_readers_with_any_colour_vision(
    theme: dict[str, str], deficiency: str
) -> None:
    seen = {
        state.key: lab(np.clip(DEFICIENCIES[deficiency] @ linear(theme[state.key]), 0, 1))
        for state in (*STATES, *SAMPLED_STATES)
    }

    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= 20, (one, other)


@THEMES
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_less_and_more_are_told_apart_by_readers_with_any_colour_vision(
    theme: dict[str, str], deficiency: str
) -> None:
    seen = {
        role: lab(np.clip(DEFICIENCIES[deficiency] @ linear(theme[role]), 0, 1))
        for role in ("less", "same", "more")
    }

    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= 20, (one, other)


@THEMES
def test_text_is_legible_on_its_background(theme: dict[str, str]) -> None:
    pairs = [("ink", "page"), ("muted", "page"), ("muted", "surface"), ("accent", "page")]
    pairs += [(f"on-{state.key}", state.key) for state in (*STATES, *SAMPLED_STATES)]
    pairs += [("on-flame", role) for role in theme if role.startswith("flame-")][:4]
    pairs += [("on-flame-lock", "flame-lock"), ("bound", "page"), ("fit", "page")]

    for text, ground in pairs:
        assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def test_both_themes_have_a_colour_for_every_role() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert theme_css().count("--spin:") == 3  # light, dark by the system, dark by choice


def test_paper_is_light_whatever_the_screen_is() -> None:
    dark = [part for part in theme_css().splitlines() if f"--page:{DARK['page']}" in part]

    assert len(dark) == 2
    assert all(part.startswith("@media screen") for part in dark)
