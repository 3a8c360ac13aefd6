"""Which samples of a file a trace is made of: those of one process, and of an event that is time.

What is left out is said, in the words of META's `not_seen`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from contention_lab.importing.perf_script import NANOSECONDS
from contention_lab.importing.stack_file import StackFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contention_lab.importing.stack_file import StackFile, StackSample

IDLE: Final = "swapper"
"""What Linux calls its threads for cores without work."""
_CYCLES: Final = ("cycles", "cpu-cycles", "cpu_core/cycles/", "cpu_atom/cycles/")
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen.

    Attributes
    ----------
    file
        The file, with the chosen samples only.
    event
        Their event, empty where the file does not say.
    not_seen
        What was left out.
    """

    file: StackFile
    event: str
    not_seen: tuple[dict[str, Any], ...]


def selected(file: StackFile, *, event: str | None, process: str | None) -> Selection:
    """Choose.

    Parameters
    ----------
    file
        All samples.
    event
        The event; by default the one that counts time, else the most frequent.
    process
        Number or name; by default the process with the most samples.

    Raises
    ------
    StackFileError
        There is nothing of that, or it is not clear what is of one process.
    """
    not_seen: list[dict[str, Any]] = []
    samples = _without(
        file.samples,
        lambda one: one.thread.name != IDLE,
        "samples of idle cores",
        "nothing ran there",
        not_seen,
    )
    if not samples:
        raise StackFileError("there is no sample in it")
    chosen = _event(samples, event)
    others = sorted({one.event for one in samples} - {chosen})
    samples = _without(
        samples,
        lambda one: one.event == chosen,
        f"samples of {', '.join(others[:_SHOWN])}",
        f"only those of one event are used, here {chosen}; --event chooses another",
        not_seen,
    )
    samples = _of_one_process(samples, process, not_seen)
    if file.lost:
        not_seen.append({"what": "samples", "why": "lost by the profiler", "count": file.lost})
    return Selection(replace(file, samples=tuple(samples)), chosen, tuple(not_seen))


def _event(samples: Sequence[StackSample], wanted: str | None) -> str:
    counts = Counter(one.event for one in samples)
    if wanted is not None:
        if wanted not in counts:
            raise StackFileError(f"no samples of {wanted}; there are: {_listed(counts)}")
        return wanted
    for good in (NANOSECONDS - {"offcpu-time"}, _CYCLES):
        timed = [event for event in counts if event in good]
        if timed:
            return max(timed, key=lambda event: counts[event])
    return counts.most_common(1)[0][0]


def _of_one_process(
    samples: Sequence[StackSample],
    wanted: str | None,
    not_seen: list[dict[str, Any]],
) -> Sequence[StackSample]:
    known = any(one.thread.process for one in samples)
    if wanted is not None:
        keep = [one for one in samples if wanted in (str(one.thread.process), one.thread.name)]
        numbers = {one.thread.process for one in keep}
        if not keep:
            names = Counter(one.thread.name or str(one.thread.process) for one in samples)
            raise StackFileError(f"no samples of a process {wanted}; there are: {_listed(names)}")
        if known and len(numbers) > 1:
            raise StackFileError(
                f"several processes are called {wanted}: {_listed(Counter(map(str, numbers)))}; "
                "choose one by its number"
            )
        names_kept = {one.thread.name for one in keep}

        def mine(one: StackSample) -> bool:
            return one.thread.process in numbers if known else one.thread.name in names_kept
    elif known:
        first = Counter(one.thread.process for one in samples).most_common(1)[0][0]

        def mine(one: StackSample) -> bool:
            return one.thread.process == first
    else:
        return samples
    others = Counter(
        f"{one.thread.name} {one.thread.process or ''}".strip() for one in samples if not mine(one)
    )
    return _without(
        samples,
        mine,
        f"samples of other processes ({_listed(others)})",
        "a trace is of one process; --process chooses another",
        not_seen,
    )


def _without(
    samples: Sequence[StackSample],
    keep: Callable[[StackSample], bool],
    what: str,
    why: str,
    not_seen: list[dict[str, Any]],
) -> Sequence[StackSample]:
    """Return the samples to keep, and note what the others are."""
    kept = [one for one in samples if keep(one)]
    if len(kept) < len(samples):
        not_seen.append({"what": what, "why": why, "count": len(samples) - len(kept)})
    return kept


def _listed(counts: Counter[str]) -> str:
    names = [name or "(no name)" for name, _ in counts.most_common(_SHOWN)]
    return ", ".join(names) + (", ..." if len(counts) > _SHOWN else "")
