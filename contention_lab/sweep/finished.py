"""The page of a sweep that is over, made again from what it left in its folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from contention_lab.report import command_page, sweep_page
from contention_lab.sweep.errors import SweepError
from contention_lab.trace import TraceError, load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contention_lab.trace import Trace

RESULT_NAME: Final = "result.json"


def finished_page(folder: Path, *, source: bool = True) -> tuple[str, str]:
    """Return the verdict and the page of a sweep of `run` or `scale`.

    Points whose trace is gone or damaged are shown without its views, and the page says so.

    Parameters
    ----------
    folder
        Where the sweep wrote.
    source
        Show lines of the program's source, where its files are as they were.

    Raises
    ------
    SweepError
        No sweep of this version has ended there.
    """
    path = folder / RESULT_NAME
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SweepError(
            f"{folder}: has no {RESULT_NAME} of a sweep; name traces, or the folder of a sweep "
            "such as reports/NAME (with --watch while it runs)"
        ) from error
    except ValueError as error:
        raise SweepError(f"{path}: is damaged; run the sweep again with --resume") from error
    try:
        if "scenario" in result:
            page = sweep_page(result, _traces(folder, result), source=source)
            return str(result["verdict"]["summary"]), page
        return str(result["law_lines"][0]), command_page(result)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise SweepError(f"{path}: is no result of this version; run the sweep again") from error


def _traces(folder: Path, result: Mapping[str, Any]) -> dict[tuple[str, int], Trace]:
    """Return the traces that can be read, by variant and number of threads."""
    found: dict[tuple[str, int], Trace] = {}
    for point in result["points"]:
        if not point.get("trace"):
            continue
        try:
            found[point["variant"], point["threads"]] = load(folder / point["trace"])
        except (TraceError, OSError):
            continue
    return found
