"""Who had a native lock while others waited for it, from its releases.

It looks at one lock at a time. Releases are recorded only while others wait, and of a thread at
most one every half a millisecond: a stretch between two of them may hide short holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.intervals import bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from contention_lab.trace import Records, Trace

    Integers = npt.NDArray[np.int64]
    Holder = tuple[int, int, int]

LATE_NS: Final = 50_000
"""Locks in code of its own a program releases before the call that wakes others, which is seen."""


def blamed_releases(waits: Records, releases: Records) -> Mapping[Holder, int]:
    """Divide the waits for one lock over those who let go of it.

    Parameters
    ----------
    waits, releases
        Events of one lock, `schema.NATIVE_WAIT`.

    Returns
    -------
    mapping
        Nanoseconds by stack, native stack and native id of whoever had it. A holder that is known
        only by its number has the stacks of its most frequent release, or 0.
    """
    sums: dict[Holder, int] = defaultdict(int)
    order = np.argsort(releases["end_ns"], kind="stable")
    releases = releases[order]
    until = bounded(releases["end_ns"])
    start, end = bounded(waits["start_ns"]), bounded(waits["end_ns"])
    first = np.searchsorted(until, start, side="right")
    count = np.searchsorted(until, end + LATE_NS, side="right") - first
    count = np.where(end > start, np.maximum(count, 0), 0)
    wait = np.repeat(np.arange(len(waits)), count)
    at = np.arange(int(count.sum())) + np.repeat(first - np.cumsum(count) + count, count)
    begin = np.where(at > first[wait], until[at - 1], start[wait])
    ns = np.minimum(until[at], end[wait]) - np.minimum(begin, end[wait])
    ns[releases["native_id"][at] == waits["native_id"][wait]] = 0
    for number, total in enumerate(np.bincount(at, weights=ns, minlength=len(releases)).tolist()):
        if total > 0:
            sums[_holder(releases[number])] += int(total)
    usual = _usual(releases)
    for number in np.flatnonzero((count == 0) & (end > start) & (waits["holder"] != 0)).tolist():
        holder = int(waits["holder"][number])
        if holder != int(waits["native_id"][number]):
            sums[usual.get(holder, (0, 0, holder))] += int(end[number] - start[number])
    return sums


def settled_stacks(trace: Trace, waits: Records) -> Integers:
    """Return the native stack of each wait, or of the thread's next one that has a whole one.

    Short waits have only their caller: they count as a part of the next wait with a stack.
    """
    found = waits["native_stack"].astype(np.int64)
    deep = {stack for stack in np.unique(found).tolist() if len(trace.native_stack(stack)) > 1}
    is_deep = np.isin(found, list(deep))
    if is_deep.all() or not is_deep.any():
        return found
    order = np.lexsort((waits["end_ns"], waits["native_id"]))
    thread = waits["native_id"][order]
    places = np.where(is_deep[order], np.arange(len(order)), len(order))
    following = np.minimum.accumulate(places[::-1])[::-1]
    known = following < len(order)
    known[known] = thread[following[known]] == thread[known]
    found[order[known]] = found[order[following[known]]]
    return found


def _usual(releases: Records) -> Mapping[int, Holder]:
    """Return for each thread its most frequent release."""
    counts: Counter[Holder] = Counter(map(_holder, releases))
    usual: dict[int, Holder] = {}
    for holder, _ in counts.most_common():
        usual.setdefault(holder[2], holder)
    return usual


def _holder(release: np.void) -> Holder:
    return int(release["stack"]), int(release["native_stack"]), int(release["native_id"])
