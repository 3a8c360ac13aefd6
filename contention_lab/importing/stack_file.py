"""What a file of sampled stacks says, whatever its format, and the complaint if it says nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.sampling.frame import SampledFrame

FORMATS: Final = ("perf-script", "collapsed")


class StackFileError(Exception):
    """A file that cannot be used; one line: what, where, what to do."""


@dataclass(frozen=True, slots=True)
class StackThread:
    """A thread, as far as a file tells it from others.

    Attributes
    ----------
    process, number
        The system's numbers of the process and the thread, 0 where unknown.
    name
        The thread's name, or its program's; empty where unknown.
    """

    process: int = 0
    number: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class StackSample:
    """One sample, or several that are alike in a format that adds them up.

    Attributes
    ----------
    time_ns
        When, by the profiler's clock; None in formats without times.
    thread
        Whose.
    frames
        Innermost first; empty where the profiler found none.
    weight
        Of what `StackFile.unit` says.
    event
        What made the profiler look (`cpu-clock`); empty where the file does not say.
    """

    time_ns: int | None
    thread: StackThread
    frames: tuple[SampledFrame, ...]
    weight: float
    event: str = ""


@dataclass(frozen=True, slots=True)
class StackFile:
    """All samples of a file.

    Attributes
    ----------
    source
        Which format, in words: `perf script`.
    samples
        In the order of the file.
    unit
        What a weight counts: `samples`, `ns`, or `events` of an unknown length.
    lost
        Samples that the profiler says it lost.
    machine
        `cores`, `system`, `release`, `processor`, as far as the file tells; as in a trace.
    """

    source: str
    samples: tuple[StackSample, ...]
    unit: str
    lost: int = 0
    machine: Mapping[str, Any] = field(default_factory=dict)
