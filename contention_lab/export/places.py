"""Locks, threads and places in the words of a timeline, each worded once."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from contention_lab.analysis.sites import user_frame
from contention_lab.report.visible_text import name, short_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from contention_lab.trace import Frame, Trace


class Words:
    """The words for what the records of a trace name by number.

    Parameters
    ----------
    trace
        The trace.
    encoded
        What each text goes through, such as `json.dumps`.

    Attributes
    ----------
    lock, thread
        Label by id; that of thread 0, which is nobody, is empty.
    frame, stack
        `function (file.py:line)` by id, of a stack that of its user frame; empty for an unknown
        one.
    """

    def __init__(self, trace: Trace, encoded: Callable[[str], str] = str) -> None:
        def worded(words: Callable[[int], str]) -> Callable[[int], str]:
            return cache(lambda number: encoded(words(number)))

        def user_place(stack: int) -> str:
            frames = trace.stack(stack)
            return _place(user_frame(frames) or (frames[0] if frames else None))

        self.lock = worded(lambda lock: name(trace.lock(lock).label))
        self.thread = worded(lambda thread: name(trace.thread(thread).label) if thread else "")
        self.frame = worded(lambda frame: _place(trace.frames.get(frame)))
        self.stack = worded(user_place)


def program_name(trace: Trace) -> str:
    """Return the name of the recorded program, else of the trace."""
    return name(PurePath(str(trace.meta.get("program") or trace.path)).name)


def _place(frame: Frame | None) -> str:
    if frame is None:
        return ""
    return f"{name(frame.function)} ({short_path(frame.filename)}:{frame.line})"
