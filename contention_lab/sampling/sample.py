"""Samples as they come: whose, when, the stack, and what is known of the thread's state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contention_lab.sampling.classes import UNKNOWN_STATE, ThreadState

if TYPE_CHECKING:
    from contention_lab.sampling.frame import SampledFrame


@dataclass(frozen=True, slots=True)
class SampledThread:
    """A thread that was sampled.

    Attributes
    ----------
    number
        `gettid`, 0 where not known.
    ident
        `threading.get_ident()`, 0 where not known.
    name
        Its name, or empty.
    is_main
        It is the main thread.
    from_python
        It runs Python code.
    start_ns, end_ns
        When it was first and last there; `end_ns` 0: to the end.
    cpu_ns
        CPU time between these, 0 where not known.
    """

    number: int = 0
    ident: int = 0
    name: str = ""
    is_main: bool = False
    from_python: bool = True
    start_ns: int = 0
    end_ns: int = 0
    cpu_ns: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One thread at one moment. Samples of all threads at one moment have one time.

    Attributes
    ----------
    time_ns
        Since the start of the recording.
    weight_ns
        The time it stands for.
    thread
        The thread's place in the list of threads.
    frames
        Its stack, innermost first.
    state
        What is known of it beside the stack.
    word
        The address of the word it sleeps on, 0 where not known: of two threads that wait for one
        lock the same.
    count
        How many samples it stands for.
    own
        Its state alone, where `state` is the usual one of its stack: used where that says nothing.
    """

    time_ns: int
    weight_ns: int
    thread: int
    frames: tuple[SampledFrame, ...]
    state: ThreadState = UNKNOWN_STATE
    word: int = 0
    count: float = 1.0
    own: ThreadState | None = None
