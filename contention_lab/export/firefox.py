"""A processed profile for https://profiler.firefox.com: samples of waiting, markers for each wait.

Each wait is a sample that weighs as long as it lasted, so that the call tree and the flame graph
show waiting; waits and holds are markers, for the marker chart. The format is that of version 47,
which newer profilers upgrade, described in
https://github.com/firefox-devtools/profiler/tree/main/docs-developer.
"""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import coordination_waits, hold_spans, lock_waits
from contention_lab.export.export_format import ExportFormat
from contention_lab.export.firefox_tables import StackTables
from contention_lab.export.places import Words, program_name
from contention_lab.report.visible_text import name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Thread, Trace

    Integers = npt.NDArray[np.integer[Any]]

VERSION: Final = 47
_INTERVAL: Final = 1
"""The phase of a marker with a start and an end."""
CATEGORIES: Final = (
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
    {"name": "Waiting for a lock", "color": "red", "subcategories": ["Other"]},
    {"name": "Waiting for others", "color": "blue", "subcategories": ["Other"]},
    {"name": "Holding", "color": "orange", "subcategories": ["Other"]},
)
_WAIT, _COORDINATION, _HOLD = 1, 2, 3


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:  # noqa: ARG001
    """Write the profile, thread by thread."""
    head = json.dumps({"meta": _meta(trace), "libs": [], "pages": [], "counters": []})
    sink.write(head[:-1].encode() + b',"threads":[')
    for number, (thread, markers) in enumerate(_threads(trace)):
        text = json.dumps(thread, separators=(",", ":"))
        sink.write(f"{',' if number else ''}\n{text[:-1]},".encode())
        sink.write(f'"markers":{markers}}}'.encode())
    sink.write(b"]}")


def _meta(trace: Trace) -> dict[str, Any]:
    machine = trace.meta.get("machine")
    cores = machine.get("cores") if isinstance(machine, dict) else None
    return {
        "interval": 1,
        "startTime": trace.start_unix_ns / 1e6,
        "abi": "",
        "misc": "",
        "oscpu": "",
        "platform": "Linux",
        "processType": 0,
        "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
        "categories": [*CATEGORIES],
        "product": program_name(trace),
        "stackwalk": 1,
        "toolkit": "",
        "version": 27,
        "preprocessedProfileVersion": VERSION,
        "symbolicated": True,
        "importedFrom": "contention-lab",
        "logicalCPUs": cores if isinstance(cores, int) else 0,
        "doesNotUseFrameImplementation": True,
        "markerSchema": [
            _schema("Wait", ("holder", "holder at", "at")),
            _schema("Hold", ("acquired at", "released at")),
        ],
    }


def _schema(kind: str, keys: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": kind,
        "tooltipLabel": f"{kind}: {{marker.data.lock}}",
        "tableLabel": "{marker.data.lock}",
        "chartLabel": "{marker.data.lock}",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "data": [
            {"key": key, "label": key, "format": "string", "searchable": True}
            for key in ("lock", *keys)
        ],
    }


def _threads(trace: Trace) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the threads, each with its own tables, and its markers as JSON."""
    contended, others, held = lock_waits(trace), coordination_waits(trace), hold_spans(trace)
    tables = [_by_thread(spans) for spans in (contended, others, held)]
    plain, words = Words(trace), Words(trace, json.dumps)  # without and with quotes
    for thread in sorted(trace.threads.values(), key=lambda one: (not one.is_main, one.id)):
        mine = [table.get(thread.id) for table in tables]
        if thread.is_main or any(spans is not None for spans in mine):
            yield _thread(trace, plain, words, thread, *mine)


def _by_thread(spans: Spans) -> dict[int, Spans]:
    """Return the spans of each thread, by their start."""
    order = np.lexsort((spans.start_ns, spans.thread))
    threads, first = np.unique(spans.thread[order], return_index=True)
    parts = np.split(order, first[1:]) if len(threads) else []
    return {int(thread): spans.where(part) for thread, part in zip(threads, parts, strict=True)}


def _thread(
    trace: Trace,
    plain: Words,
    words: Words,
    thread: Thread,
    contended: Spans | None,
    others: Spans | None,
    held: Spans | None,
) -> tuple[dict[str, Any], str]:
    tables = StackTables()
    samples: list[tuple[Integers, ...]] = []
    markers = _Markers(tables)
    for spans, category in ((contended, _WAIT), (others, _COORDINATION)):
        if spans is None:
            continue
        waits = trace.waits[spans.index]
        ids, which = distinct(waits["stack"], waits["lock"])
        called = cache(partial(_stack, trace, tables, category))
        stacks = np.array(
            [
                tables.stack(plain.lock(lock), "", 0, 0, prefix=called(stack), category=category)
                for stack, lock in ids
            ]
        )
        samples.append((spans.start_ns, stacks[which], spans.length_ns))
        columns = (waits[field] for field in ("lock", "stack", "holder", "holder_stack"))
        combinations, which = distinct(*columns)
        said = [_wait(words, *values) for values in combinations]
        names = [f"Wait: {plain.lock(lock)}" for lock, *_ in combinations]
        markers.add(spans, said, names, which, category)
    if held is not None:
        holds = trace.holds[held.index]
        combinations, which = distinct(holds["lock"], holds["site"], holds["stack"])
        said = [_hold(words, *values) for values in combinations]
        names = [f"Hold: {plain.lock(lock)}" for lock, *_ in combinations]
        markers.add(held, said, names, which, _HOLD)
    about = {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": thread.start_ns / 1e6,
        "unregisterTime": thread.end_ns / 1e6 if thread.end_ns else None,
        "pausedRanges": [],
        "showMarkersInTimeline": True,
        "name": name(thread.label),
        "isMainThread": thread.is_main,
        "processName": program_name(trace),
        "pid": str(trace.pid),
        "tid": thread.native_id or thread.id,
        "samples": _samples(samples),
    }
    return about | tables.to_json(), markers.to_json()


def _samples(parts: list[tuple[Integers, ...]]) -> dict[str, Any]:
    time, stack, weight = (
        np.concatenate([part[column] for part in parts]) if parts else np.zeros(0, dtype=np.int64)
        for column in range(3)
    )
    order = np.argsort(time, kind="stable")
    return {
        "stack": stack[order].tolist(),
        "time": (time[order] / 1e6).tolist(),
        "weight": (weight[order] / 1e6).tolist(),
        "weightType": "tracing-ms",
        "length": len(order),
    }


class _Markers:
    """The markers of one thread: what each says is JSON already, since few texts are said often."""

    def __init__(self, tables: StackTables) -> None:
        self._tables = tables
        self._said: list[str] = []
        self._columns: dict[str, list[Any]] = {
            key: [] for key in ("name", "startTime", "endTime", "phase", "category")
        }

    def add(
        self, spans: Spans, said: list[str], names: list[str], which: Integers, category: int
    ) -> None:
        """Add a marker for each span; what it says and its name by `which`."""
        at = which.tolist()
        texts = [*map(self._tables.text, names)]
        self._said += map(said.__getitem__, at)
        self._columns["name"] += map(texts.__getitem__, at)
        self._columns["startTime"] += (spans.start_ns / 1e6).tolist()
        self._columns["endTime"] += (spans.end_ns / 1e6).tolist()
        self._columns["phase"] += [_INTERVAL] * len(at)
        self._columns["category"] += [category] * len(at)

    def to_json(self) -> str:
        """Return the table of markers."""
        columns = json.dumps({**self._columns, "length": len(self._said)}, separators=(",", ":"))
        return f'{{"data":[{",".join(self._said)}],{columns[1:]}'


def _stack(trace: Trace, tables: StackTables, category: int, stack: int) -> int | None:
    """Return the number of a stack; None for an empty one."""
    found = None
    for frame in reversed(trace.stack(stack)):
        place = name(frame.function), frame.filename, frame.line, frame.first_line
        found = tables.stack(*place, prefix=found, category=category)
    return found


def _wait(words: Words, lock: int, stack: int, holder: int, holder_stack: int) -> str:
    return (
        f'{{"type":"Wait","lock":{words.lock(lock)},"at":{words.stack(stack)},'
        f'"holder":{words.thread(holder)},"holder at":{words.stack(holder_stack)}}}'
    )


def _hold(words: Words, lock: int, site: int, stack: int) -> str:
    return (
        f'{{"type":"Hold","lock":{words.lock(lock)},"acquired at":{words.frame(site)},'
        f'"released at":{words.stack(stack)}}}'
    )


FORMAT: Final = ExportFormat("firefox", ".firefox.json", "https://profiler.firefox.com", write)
