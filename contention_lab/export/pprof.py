"""A profile for pprof: contentions and delay, as Go's block and mutex profiles have them.

Gzipped protocol buffers; the field numbers are those of
https://github.com/google/pprof/blob/main/proto/profile.proto. A lock is the innermost function of
a victim's stack and the outermost of a culprit's, and in both a label of the sample, so that
`-tagfocus` and `-tagroot` find it.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, BinaryIO, Final

from contention_lab.analysis.weighted_stacks import weighted_stacks
from contention_lab.export.export_format import ExportFormat
from contention_lab.export.places import program_name
from contention_lab.export.protobuf_wire import block, integer, packed
from contention_lab.report.visible_text import name, visible

if TYPE_CHECKING:
    from contention_lab.analysis.weighted_stacks import Step, View, WeightedStack
    from contention_lab.trace import Trace

# Fields of Profile
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _PERIOD_TYPE, _PERIOD, _DEFAULT_SAMPLE_TYPE = 9, 10, 11, 12, 14
# Fields of the messages in it
_TYPE, _UNIT = 1, 2
_LOCATION_IDS, _VALUES, _LABELS = 1, 2, 3
_KEY, _STR = 1, 2
_ID = 1
_MAPPING_FILENAME, _HAS_FUNCTIONS = 5, 7
_LOCATION_MAPPING, _LINES = 2, 4
_FUNCTION_ID, _LINE = 1, 2
_NAME, _SYSTEM_NAME, _FILENAME, _START_LINE = 2, 3, 4, 5


def write(trace: Trace, sink: BinaryIO, view: View | None) -> None:
    """Write the stacks of a view, `victim` by default."""
    wanted = view or "victim"
    profile = _Profile()
    count, delay = ("holds", "time") if wanted == "hold" else ("contentions", "delay")
    for stack in weighted_stacks(trace, wanted):
        profile.add(stack, lock=stack.steps[0 if wanted == "culprit" else -1])
    message = profile.message(
        count, delay, program_name(trace), trace.start_unix_ns, trace.duration_ns
    )
    # No time and no name in the gzip header: the same trace gives the same bytes.
    sink.write(gzip.compress(message, compresslevel=6, mtime=0))


class _Profile:
    """The tables of a profile, filled sample by sample."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[tuple[int, int], int] = {}
        self._samples: dict[tuple[tuple[int, ...], int], list[int]] = {}

    def add(self, stack: WeightedStack, lock: Step) -> None:
        """Add a stack; equal ones are one sample."""
        places = tuple(self._location(step) for step in reversed(stack.steps))
        sums = self._samples.setdefault((places, self._string(name(lock.name))), [0, 0])
        sums[0] += stack.events
        sums[1] += stack.ns

    def message(
        self, count: str, delay: str, program: str, start_unix_ns: int, duration_ns: int
    ) -> bytes:
        """Return the encoded profile."""
        types = [
            integer(_TYPE, self._string(kind)) + integer(_UNIT, self._string(unit))
            for kind, unit in ((count, "count"), (delay, "nanoseconds"))
        ]
        label_key = self._string("lock")
        mapping = (
            integer(_ID, 1)
            + integer(_MAPPING_FILENAME, self._string(program))
            + integer(_HAS_FUNCTIONS, 1)
        )
        parts = [block(_SAMPLE_TYPE, kind) for kind in types]
        for (places, lock), sums in self._samples.items():
            label = integer(_KEY, label_key) + integer(_STR, lock)
            sample = packed(_LOCATION_IDS, places) + packed(_VALUES, sums) + block(_LABELS, label)
            parts.append(block(_SAMPLE, sample))
        parts.append(block(_MAPPING, mapping))
        parts += [
            block(
                _LOCATION,
                integer(_ID, number)
                + integer(_LOCATION_MAPPING, 1)
                + block(_LINES, integer(_FUNCTION_ID, function) + integer(_LINE, line)),
            )
            for (function, line), number in self._locations.items()
        ]
        parts += [
            block(
                _FUNCTION,
                integer(_ID, number)
                + integer(_NAME, self._string(name(function)))
                + integer(_SYSTEM_NAME, self._string(name(function)))
                + integer(_FILENAME, self._string(visible(file)))
                + integer(_START_LINE, first_line),
            )
            for (function, file, first_line), number in self._functions.items()
        ]
        default = self._string(delay)
        parts += [block(_STRING, text.encode()) for text in self._strings]
        parts += [
            integer(_TIME_NANOS, start_unix_ns),
            integer(_DURATION_NANOS, duration_ns),
            block(_PERIOD_TYPE, types[0]),
            integer(_PERIOD, 1),
            integer(_DEFAULT_SAMPLE_TYPE, default),
        ]
        return b"".join(parts)

    def _location(self, step: Step) -> int:
        key = step.name, step.file, step.first_line
        function = self._functions.setdefault(key, len(self._functions) + 1)
        return self._locations.setdefault((function, step.line), len(self._locations) + 1)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))


FORMAT: Final = ExportFormat(
    "pprof", ".pb.gz", "pprof (go tool pprof -http=:)", write, by_view=True
)
