"""Colours of the page, by role and theme: the one place where they are written.

Plots, tables, flame graphs and style sheet name a role (`spin`, `ink`), never a colour. The
states of a thread keep their colours everywhere, and stay apart for readers with any of the three
colour deficiencies (a test simulates them). The style sheet gets one variable per role and theme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class State:
    """What a thread does at a moment, as all views name and colour it."""

    key: str
    """Key in `thread_s` and role of its colour."""
    title: str
    meaning: str


STATES: Final = (
    State("run", "running", "on a core, doing the program’s own work"),
    State("spin", "spinning", "asking for the lock again and again, on a core"),
    State("park", "parked", "asleep until the lock is free"),
    State(
        "gil",
        "waiting for the GIL",
        "another thread runs Python; without the preloaded layer only with a lock already ours",
    ),
    State("coordination", "coordination", "waiting for an event, an item or a thread"),
    State(
        "other",
        "off the core",
        "no core was free, input or output, or waiting for the GIL that is not seen",
    ),
)

SAMPLED_STATES: Final = (
    State("run", "running", "on a core, or waiting for a free one"),
    State("spin", "spinning", "on a core, asking for a lock again and again"),
    State("park", "waiting for a lock", "asleep in code that takes a lock"),
    State("gil", "waiting for the GIL", "another thread runs Python"),
    State("coordination", "coordination", "waiting for an event, an item or a thread"),
    State("io", "input or output", "blocked in a system call, such as a read"),
    State("other", "asleep or unknown", "for a time it chose, or nothing says what for"),
)
"""The same where threads were sampled, which shows input and output, but counts nothing."""

LIGHT: Final[dict[str, str]] = {
    "page": "#ffffff",
    "surface": "#f6f7f9",
    "raised": "#ffffff",
    "ink": "#1b2027",
    "muted": "#59636f",
    "faint": "#8b95a1",
    "line": "#dfe3e8",
    "grid": "#e9ecf0",
    "accent": "#1a5fb4",
    "mark": "#fff0b8",
    "run": "#1b7f79",
    "spin": "#d1480f",
    "park": "#f0b429",
    "gil": "#6b4fa0",
    "coordination": "#8fb7d9",
    "io": "#632814",
    "other": "#d5d9de",
    "on-run": "#ffffff",
    "on-spin": "#ffffff",
    "on-park": "#1b2027",
    "on-gil": "#ffffff",
    "on-coordination": "#1b2027",
    "on-io": "#ffffff",
    "on-other": "#1b2027",
    "measured": "#1b2027",
    "fit": "#1a5fb4",
    "bound": "#a8327d",
    "ideal": "#8b95a1",
    "line-0": "#1b2027",
    "line-1": "#1a5fb4",
    "line-2": "#a8327d",
    "line-3": "#5a8f1f",
    "line-4": "#8a5a2b",
    "line-5": "#3f9fd8",
    "line-6": "#7d6b00",
    "line-7": "#7d8794",
    "flame-victim": "#f7d58b",
    "flame-culprit": "#9fd3cd",
    "flame-pair": "#d3d99b",
    "flame-spin": "#f3ad8d",
    "flame-hold": "#a9cbe8",
    "flame-gil": "#c9bdf0",
    "flame-gil-holder": "#e3b9dc",
    "flame-lock": "#39424e",
    "on-flame": "#1b2027",
    "on-flame-lock": "#ffffff",
    "heat": "#d1480f",
    "less": "#6fa8dc",
    "same": "#d5d9de",
    "more": "#ee8d4e",
}

DARK: Final[dict[str, str]] = {
    "page": "#14171c",
    "surface": "#1a1f26",
    "raised": "#222831",
    "ink": "#e7eaee",
    "muted": "#a3adb9",
    "faint": "#77828f",
    "line": "#2e353f",
    "grid": "#262c35",
    "accent": "#7ab7ff",
    "mark": "#5c4a12",
    "run": "#46a89a",
    "spin": "#ec6630",
    "park": "#f6d478",
    "gil": "#8d80e6",
    "coordination": "#3f6f96",
    "io": "#99543d",
    "other": "#3a424d",
    "on-run": "#10141a",
    "on-spin": "#10141a",
    "on-park": "#10141a",
    "on-gil": "#10141a",
    "on-coordination": "#ffffff",
    "on-io": "#ffffff",
    "on-other": "#e7eaee",
    "measured": "#e7eaee",
    "fit": "#7ab7ff",
    "bound": "#f08ac8",
    "ideal": "#77828f",
    "line-0": "#e7eaee",
    "line-1": "#7ab7ff",
    "line-2": "#f08ac8",
    "line-3": "#a2cf6e",
    "line-4": "#d3a37a",
    "line-5": "#3f9fd8",
    "line-6": "#e0d36a",
    "line-7": "#8b95a1",
    "flame-victim": "#d3b05c",
    "flame-culprit": "#5cb3a7",
    "flame-pair": "#aab765",
    "flame-spin": "#e08a63",
    "flame-hold": "#7fb0de",
    "flame-gil": "#a596e8",
    "flame-gil-holder": "#d18fc6",
    "flame-lock": "#3a424d",
    "on-flame": "#10141a",
    "on-flame-lock": "#e7eaee",
    "heat": "#ec6630",
    "less": "#5b9bdc",
    "same": "#3a424d",
    "more": "#e8854a",
}

LINES: Final = 8
"""Number of `line-…` roles: colours of the variants of a sweep."""


def line_role(index: int) -> str:
    """Role of the colour of the variant with this index; colours repeat after `LINES`."""
    return f"line-{index % LINES}"


def theme_css() -> str:
    """Variables `--role` for both themes, and classes for fill, stroke and background.

    The system's preference decides, until the reader chooses (`data-theme` on the root element).
    Paper is always light. What stands on a colour is text, which is only filled.
    """
    light = _variables(LIGHT, "light")
    dark = _variables(DARK, "dark")
    classes = "".join(f".f-{role}{{fill:var(--{role})}}" for role in LIGHT)
    classes += "".join(
        f".s-{role}{{stroke:var(--{role})}}.b-{role}{{background:var(--{role})}}"
        for role in LIGHT
        if not role.startswith("on-")
    )
    return (
        f":root{{{light}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
        f"{classes}\n"
    )


def _variables(theme: dict[str, str], scheme: str) -> str:
    return f"color-scheme:{scheme};" + "".join(f"--{role}:{hue};" for role, hue in theme.items())
