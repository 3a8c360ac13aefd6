"""Chrome's trace events: a timeline for Perfetto, viztracer's viewer and `chrome://tracing`.

Each thread has a lane with its waits, for locks, for others and for the GIL, and one with its holds
and the calls it was blocked in meanwhile; more where they do not nest. Arrows lead from the release
to the acquire it made possible, and counters show how many wait for a lock. The format is that of
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from contention_lab.analysis import lock_table
from contention_lab.analysis.distinct import distinct
from contention_lab.analysis.intervals import coordination_waits, hold_spans, lock_waits
from contention_lab.analysis.waiters_over_time import waiters_over_time
from contention_lab.export.export_format import ExportFormat
from contention_lab.export.hand_over_pairs import hand_over_pairs
from contention_lab.export.lanes import lanes
from contention_lab.export.places import Words, program_name
from contention_lab.report.visible_text import name
from contention_lab.trace.layer_schema import WorldCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from contention_lab.analysis.weighted_stacks import View
    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.integer[Any]]

MOST_ARROWS: Final = 50_000
"""Of the longest waits; more could not be told apart on any screen."""
COUNTED_LOCKS: Final = 20
"""Locks with a counter of waiters: the most waited for."""
MOST_POINTS: Final = 4_000
"""Points of a counter: as many as a wide screen has pixels."""

_FIRST_OWN_TID: Final = 1 << 30
"""Numbers of lanes that are not the system's number of a thread start here."""
_LANES: Final = 1024
_WAITS, _HOLDS = 0, 512
"""First lanes of waits and of holds, of `_LANES` of a thread."""
_BLOCK: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class _Slices:
    """Spans of time to draw, with texts by number."""

    thread: Integers
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    text: Integers
    texts: tuple[str, ...]
    """JSON from the name on, without braces."""


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:  # noqa: ARG001
    """Write the timeline."""
    write_events(trace, sink)
    write_end(trace, sink, {})


def write_events(
    trace: Trace,
    sink: BinaryIO,
    *,
    base_ns: int = 0,
    others: Callable[[Mapping[int, int]], Iterable[bytes]] | None = None,
) -> None:
    """Write the timeline up to the last event.

    Parameters
    ----------
    trace
        A trace.
    sink
        Where to.
    base_ns
        The time at which the recording began; times are counted from it by default.
    others
        Returns events of another recorder, as JSON, which have the first lane of each thread. It is
        given the numbers that these lanes have, by the system's number of the thread.
    """
    tids = _Tids(trace, base_ns, apart=others is not None)
    words = Words(trace, json.dumps)  # a text in quotes
    sink.write(b'{"traceEvents":[')
    lines = [_event(ph="M", pid=trace.pid, name="process_name", args={"name": program_name(trace)})]
    sink.write(",\n".join(lines).encode())
    wait_lane = _draw(sink, trace.pid, tids, _waits(trace, words), _WAITS)
    hold_lane = _draw(sink, trace.pid, tids, _holds(trace, words), _HOLDS)
    arrows = _arrows(trace, tids, wait_lane, hold_lane)
    for line in (*arrows, *_counters(trace, base_ns), *tids.lines()):
        sink.write(f",\n{line}".encode())
    for part in others(tids.first_lanes()) if others is not None else ():
        sink.write(b",\n" + part)


def write_end(trace: Trace, sink: BinaryIO, facts: Mapping[str, Any]) -> None:
    """Write what follows the last event, with facts about the file."""
    about = {key: trace.meta[key] for key in ("package_version", "python") if key in trace.meta}
    end: dict[str, Any] = {
        "displayTimeUnit": "ns",
        "otherData": {**about, "arrows": f"of the {MOST_ARROWS} longest waits at most", **facts},
    }
    sink.write(b"],\n" + json.dumps(end)[1:].encode())


class _Tids:
    """Numbers of the lanes: the system's number of a thread for its waits, else numbers of ours."""

    def __init__(self, trace: Trace, base_ns: int, *, apart: bool) -> None:
        self.base_ns = base_ns
        self._trace = trace
        self._apart = apart
        threads = [thread for thread in trace.threads.values() if not thread.is_task]
        # A Python thread may come back as another, native one for the moment in which it ends.
        python = Counter(thread.native_id for thread in threads if thread.from_python)
        threads = [one for one in threads if one.from_python or one.native_id not in python]
        count = Counter(thread.native_id for thread in threads)
        self._native = {
            thread.id: thread.native_id
            for thread in threads
            if thread.native_id and count[thread.native_id] == 1
        }
        self._used: set[tuple[int, int]] = set()

    def of(self, thread: int, lane: int) -> int:
        """Return the number of a lane of a thread."""
        if self._apart:
            return _FIRST_OWN_TID + thread * (_LANES + 1) + lane + 1
        native = self._native.get(thread) if lane == _WAITS else None
        return native or _FIRST_OWN_TID + thread * _LANES + lane

    def first_lanes(self) -> dict[int, int]:
        """Return the numbers of the lanes that another recorder fills, by the system's numbers.

        Viewers order lanes by their numbers, and put first that of the main thread, which has the
        number of the process.
        """
        main = self._trace.pid
        return {
            native: native if native == main else self.of(thread, -1)
            for thread, native in self._native.items()
        }

    def column(self, thread: Integers, lane: Integers) -> list[int]:
        """Return the numbers of many."""
        pairs, which = distinct(thread, lane)
        numbers = np.array([*starmap(self.of, pairs)], dtype=np.int64)
        found: list[int] = numbers[which].tolist()
        return found

    def name(self, thread: Integers, lane: Integers) -> None:
        """Name these lanes in `lines`."""
        self._used.update((a, b) for a, b in distinct(thread, lane)[0])

    def lines(self) -> Iterator[str]:
        """Yield the events that name the lanes and order them by thread."""
        if self._apart:
            yield from self._lines_of_others()
        for thread, lane in sorted(self._used):
            waits = "waits: " if self._apart else ""
            title = "holds: " if lane >= _HOLDS else waits  # first: viewers cut the end off
            title += name(self._trace.thread(thread).label)
            extra = lane - (_HOLDS if lane >= _HOLDS else _WAITS)
            title += f" ({extra + 1})" if extra else ""
            place = {"pid": self._trace.pid, "tid": self.of(thread, lane)}
            yield _event(ph="M", name="thread_name", args={"name": title}, **place)
            index = {"sort_index": thread * _LANES + lane + 1}
            yield _event(ph="M", name="thread_sort_index", args=index, **place)

    def _lines_of_others(self) -> Iterator[str]:
        """Yield the events that put the threads' own lanes, which another recorder fills, first."""
        numbers = self.first_lanes()
        for thread, native in sorted(self._native.items()):
            place = {"pid": self._trace.pid, "tid": numbers[native]}
            title = name(self._trace.thread(thread).label)
            yield _event(ph="M", name="thread_name", args={"name": title}, **place)
            index = {"sort_index": thread * _LANES}
            yield _event(ph="M", name="thread_sort_index", args=index, **place)


def _waits(trace: Trace, words: Words) -> _Slices:
    """Return all waiting: for locks, for others, for the GIL."""
    contended, others = lock_waits(trace), coordination_waits(trace)
    index = np.concatenate([contended.index, others.index])
    waits = trace.waits[index]
    kind = np.repeat(np.array([0, 1]), [len(contended.index), len(others.index)])

    def waited(kind: int, lock: int, stack: int, holder: int, holder_stack: int) -> str:
        verb, category = ("awaits", "coordination") if kind else ("wait", "wait")
        return (
            f'"name":"{verb}: {words.lock(lock)[1:]},"cat":"{category}","args":{{'
            f'"at":{words.stack(stack)},"holder":{words.thread(holder)},'
            f'"holder at":{words.stack(holder_stack)}}}'
        )

    def waited_for_gil(holder: int, stack: int) -> str:
        return (
            f'"name":"wait: GIL","cat":"gil","args":{{"at":{words.stack(stack)},'
            f'"holder":{words.thread(holder)}}}'
        )

    fields = ("lock", "stack", "holder", "holder_stack")
    texts, which = _worded((kind, *(waits[field] for field in fields)), waited)
    gil = trace.gil_waits
    gil_texts, of_gil = _worded((gil["holder"], gil["stack"]), waited_for_gil)
    start, end = _times(gil)
    return _Slices(
        np.concatenate([contended.thread, others.thread, gil["thread"]]),
        np.concatenate([contended.start_ns, others.start_ns, start]),
        np.concatenate([contended.end_ns, others.end_ns, end]),
        np.concatenate([which, of_gil + len(texts)]),
        (*texts, *gil_texts),
    )


def _holds(trace: Trace, words: Words) -> _Slices:
    """Return the holds, and the calls that holders were blocked in."""
    spans, holds = hold_spans(trace), trace.holds
    call_names = {member.value: member.name.lower() for member in WorldCall}

    def held(lock: int, site: int, stack: int) -> str:
        return (
            f'"name":"hold: {words.lock(lock)[1:]},"cat":"hold","args":{{'
            f'"acquired at":{words.frame(site)},"released at":{words.stack(stack)}}}'
        )

    def blocked(call: int, stack: int) -> str:
        called = call_names.get(call, "other")
        return f'"name":"blocked: {called}","cat":"blocked","args":{{"at":{words.stack(stack)}}}'

    texts, which = _worded((holds["lock"], holds["site"], holds["stack"]), held)
    calls = trace.blocking
    call_texts, of_calls = _worded((calls["call"], calls["stack"]), blocked)
    start, end = _times(calls)
    return _Slices(
        np.concatenate([spans.thread, calls["thread"]]),
        np.concatenate([spans.start_ns, start]),
        np.concatenate([spans.end_ns, end]),
        np.concatenate([which, of_calls + len(texts)]),
        (*texts, *call_texts),
    )


def _worded(
    columns: tuple[Integers, ...], text: Callable[..., str]
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return the texts of all combinations of values, and which of them each record has."""
    combinations, which = distinct(*columns)
    return tuple(starmap(text, combinations)), which.astype(np.int64)


def _times(events: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    start = events["start_ns"].astype(np.int64)
    return start, np.maximum(start, events["end_ns"].astype(np.int64))


def _draw(sink: BinaryIO, pid: int, tids: _Tids, slices: _Slices, group: int) -> Integers:
    """Write complete events in lanes from `group` on; return the lane of each."""
    template = f',\n{{"ph":"X","pid":{pid},"tid":%d,"ts":%d.%03d,"dur":%d.%03d,%s}}'
    order, lane = lanes(slices.thread, slices.start_ns, slices.end_ns)
    lane = group + np.minimum(lane, _LANES - _HOLDS - 1)
    tids.name(slices.thread[order], lane)
    for first in range(0, len(order), _BLOCK):
        part = order[first : first + _BLOCK]
        start = slices.start_ns[part]
        length = slices.end_ns[part] - start
        start = start + tids.base_ns
        rows = zip(
            tids.column(slices.thread[part], lane[first : first + _BLOCK]),
            *(number.tolist() for ns in (start, length) for number in (ns // 1000, ns % 1000)),
            map(slices.texts.__getitem__, slices.text[part].tolist()),
            strict=True,
        )
        sink.write("".join([template % row for row in rows]).encode())
    places = np.empty(len(order), dtype=np.intp)
    places[order] = lane
    return places


def _arrows(trace: Trace, tids: _Tids, wait_lane: Integers, hold_lane: Integers) -> Iterator[str]:
    """Yield arrows from releases to the acquires they made possible.

    They begin and end a nanosecond before the spans do, since an arrow belongs to what lies around
    its end.
    """
    pairs = hand_over_pairs(trace, MOST_ARROWS)
    contended, held = lock_waits(trace), hold_spans(trace)
    at = np.searchsorted(contended.index, pairs.wait)
    ends = (
        ("s", held.thread[pairs.hold], hold_lane[pairs.hold], held.end_ns[pairs.hold]),
        ("f", contended.thread[at], wait_lane[at], contended.end_ns[at]),
    )
    for phase, thread, lane, end_ns in ends:
        bound = '"bp":"e",' if phase == "f" else ""
        template = (
            f'{{"ph":"{phase}",{bound}"pid":{trace.pid},"tid":%d,"ts":%d.%03d,"id":%d,'
            '"name":"release to acquire","cat":"hand-over"}'
        )
        before = np.maximum(end_ns - 1, 0) + tids.base_ns
        rows = zip(
            tids.column(thread, lane),
            (before // 1000).tolist(),
            (before % 1000).tolist(),
            range(1, len(before) + 1),
            strict=True,
        )
        yield from (template % row for row in rows)


def _counters(trace: Trace, base_ns: int) -> Iterator[str]:
    """Yield how many threads wait for each of the most waited-for locks."""
    spans = lock_waits(trace)
    seen: Counter[str] = Counter()
    for row in lock_table(trace)[:COUNTED_LOCKS]:
        mine = spans.where(spans.lock == row.lock.id)
        if not mine.length_ns.any():
            continue
        label = name(row.lock.label)
        seen[label] += 1
        title = f"waiting: {label}" + (f" ({seen[label]})" if seen[label] > 1 else "")
        head = json.dumps({"ph": "C", "pid": trace.pid, "name": title})[:-1]
        points = waiters_over_time(mine.start_ns, mine.end_ns, MOST_POINTS)
        for since_ns, waiting in zip(*(column.tolist() for column in points), strict=True):
            time_ns = since_ns + base_ns
            ts = f"{time_ns // 1000}.{time_ns % 1000:03d}"
            yield f'{head},"ts":{ts},"args":{{"threads":{waiting}}}}}'


def _event(**fields: Any) -> str:
    return json.dumps(fields)


FORMAT: Final = ExportFormat(
    "perfetto", ".perfetto.json", "https://ui.perfetto.dev, or `vizviewer FILE`", write
)
