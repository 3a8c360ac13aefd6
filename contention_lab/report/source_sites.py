"""The places of a recording whose source a page shows, the most important first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from contention_lab.analysis.sites import is_user_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contention_lab.analysis import BlockMatrix, FlameNode
    from contention_lab.analysis.lock_graph import LockGraph
    from contention_lab.report.lock_lines import LockLines
    from contention_lab.report.point_view import PointView
    from contention_lab.trace import Frame, Trace

SMALLEST_SHARE: Final = 0.02
"""Of a flame graph, of a frame whose source is shown."""
PARTIES: Final = ("culprits", "victims")


def sites_of(
    trace: Trace,
    matrix: BlockMatrix,
    locks: LockLines,
    graph: LockGraph,
    flames: Iterable[FlameNode],
) -> tuple[Frame, ...]:
    """Return the places that the views of a run name, each once."""
    found: dict[Frame, None] = {}
    frames = [*matrix.culprits, *matrix.victims, *(row.lock.site for row in locks.rows)]
    frames += [frame for edge in graph.edges for places in edge.places for frame in places]
    frames += _heavy(trace, flames)
    found.update((frame, None) for frame in frames if frame and is_user_code(frame.filename))
    return tuple(found)


def sites_of_findings(trace: Trace, findings: Sequence[Mapping[str, Any]]) -> Iterator[Frame]:
    """Yield the places that findings name, those that make others wait first."""
    index = _index(trace)
    for finding in findings:
        parties = [party for side in PARTIES for party in finding.get(side) or ()]
        named = [party.get(key) for key in ("site", "acquired") for party in parties]
        named.append((finding.get("lock") or {}).get("site"))
        for site in named:
            key = (site["function"], site["file"], site["line"]) if site else None
            if key in index:
                yield index[key]


def sites_of_views(views: Sequence[PointView]) -> Iterator[tuple[Frame, int]]:
    """Yield the places of the runs of a page, the first of each run first, with its start."""
    most = max((len(view.sites) for view in views), default=0)
    for at in range(most):
        yield from ((v.sites[at], v.recorded_ns) for v in views if at < len(v.sites))


def _heavy(trace: Trace, flames: Iterable[FlameNode]) -> list[Frame]:
    """Return the program's frames that take a visible part of a flame graph."""
    index = _index(trace)
    found: list[Frame] = []
    for root in flames:
        nodes = [root]
        for node in nodes:  # the list grows while it is read
            nodes += [n for n in node.children if n.total_ns >= root.total_ns * SMALLEST_SHARE]
            frame = index.get((node.name, node.file, node.line))
            if frame is not None and root.total_ns:
                found.append(frame)
    return found


def _index(trace: Trace) -> dict[tuple[str, str, int], Frame]:
    """Return the frames of a trace by what a page knows of them, and the starts of functions."""
    found: dict[tuple[str, str, int], Frame] = {}
    for frame in trace.frames.values():
        start = replace(frame, line=frame.first_line)
        found.setdefault((frame.function, frame.filename, frame.first_line), start)
    found.update(((f.function, f.filename, f.line), f) for f in trace.frames.values())
    return found
