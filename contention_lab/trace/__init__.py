"""The trace file: what a recording leaves, and all that the analysis needs.

`load` reads one, `TraceBuilder` writes one by hand. The bytes are explained in `FORMAT.md` and
laid out in `schema.py`. Nothing here knows who recorded, or draws conclusions.
"""

from contention_lab.trace.builder import TraceBuilder
from contention_lab.trace.columns import Columns
from contention_lab.trace.model import Frame, Lock, Thread, Trace, TraceError
from contention_lab.trace.not_seen import not_seen
from contention_lab.trace.reader import load, parse
from contention_lab.trace.records import Records
from contention_lab.trace.sample_schema import Doing
from contention_lab.trace.schema import (
    Call,
    ChunkKind,
    Clock,
    GilFlag,
    HoldFlag,
    Level,
    OrderFlag,
    Outcome,
    State,
    WaitFlag,
    WaitKind,
)

__all__ = [
    "Call",
    "ChunkKind",
    "Clock",
    "Columns",
    "Doing",
    "Frame",
    "GilFlag",
    "HoldFlag",
    "Level",
    "Lock",
    "OrderFlag",
    "Outcome",
    "Records",
    "State",
    "Thread",
    "Trace",
    "TraceBuilder",
    "TraceError",
    "WaitFlag",
    "WaitKind",
    "load",
    "not_seen",
    "parse",
]
