"""A file for speedscope: one profile for each view, of stacks weighted by nanoseconds.

The format is documented at https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
and defined by the JSON schema that the file names.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from contention_lab.analysis.weighted_stacks import VIEWS, weighted_stacks
from contention_lab.export.export_format import ExportFormat
from contention_lab.export.places import program_name
from contention_lab.report.visible_text import name, visible

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import Step, View
    from contention_lab.trace import Trace

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

_TITLES: Final = {
    "victim": "waiting, by who waits",
    "culprit": "waiting, by lock and who makes them wait",
    "spin": "spinning, by who spins",
    "hold": "holding, by who holds",
    "gil": "waiting for the GIL, by who waits",
    "gil-holder": "waiting for the GIL, by who has it",
}


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:
    """Write one view, or all that have anything to show."""
    frames: dict[tuple[str, str, int], int] = {}
    profiles = [
        profile
        for wanted in ((view,) if view else VIEWS)
        if (profile := _profile(trace, wanted, frames))["weights"] or wanted in (view, VIEWS[0])
    ]
    document = {
        "$schema": SCHEMA,
        "name": program_name(trace),
        "exporter": f"contention-lab {trace.meta.get('package_version', '')}".strip(),
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(*key) for key in frames]},
        "profiles": profiles,
    }
    sink.write(json.dumps(document, separators=(",", ":")).encode())


def _profile(trace: Trace, view: View, frames: dict[tuple[str, str, int], int]) -> dict[str, Any]:
    """Return one profile; frames it needs are added."""

    def number(step: Step) -> int:
        return frames.setdefault((step.name, step.file, step.line), len(frames))

    totals: dict[tuple[int, ...], int] = {}
    for stack in weighted_stacks(trace, view):
        key = tuple(map(number, stack.steps))
        totals[key] = totals.get(key, 0) + stack.ns
    return {
        "type": "sampled",
        "name": _TITLES[view],
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(totals.values()),
        "samples": [*map(list, totals)],
        "weights": [*totals.values()],
    }


def _frame(function: str, file: str, line: int) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": name(function)}
    if file:
        frame["file"] = visible(file)
    if line:
        frame["line"] = line
    return frame


FORMAT: Final = ExportFormat(
    "speedscope", ".speedscope.json", "speedscope (https://www.speedscope.app)", write, by_view=True
)
