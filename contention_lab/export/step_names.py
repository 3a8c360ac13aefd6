"""How a step of a stack is called in formats that have one text for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import Step


def step_name(step: Step) -> str:
    """Return `function (file.py:line)`; a remark as it is."""
    if not step.file:
        return name(step.name)
    place = f"{short_path(step.file)}:{step.line}" if step.line else short_path(step.file)
    return f"{name(step.name)} ({place})"
