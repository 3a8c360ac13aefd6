"""The samples of a trace, laid out for its findings. It gathers and adds up; it judges nothing."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.sites import user_frame
from contention_lab.diagnosis.finding import AccusedLock, Party
from contention_lab.diagnosis.sampled.share import BATCHES, Share, share

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    import numpy.typing as npt

    from contention_lab.trace import Doing, Frame, Trace

    Mask: TypeAlias = npt.NDArray[np.bool_]

PARTIES: Final = 10
"""Places named, at most."""
LEAST_PART: Final = 0.01
"""Share from which a place that is not the first is named: a stack may be read a moment late."""


class Facts:
    """What samples say.

    Attributes
    ----------
    trace
        The trace.
    doing, thread, lock, holder, stack
        Of each sample, int64.
    weight_s
        The time it stands for.
    moment
        Which moment it is of, from 0.
    moments
        How many.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        samples = trace.samples
        names = ("doing", "thread", "lock", "holder", "stack")
        self.doing, self.thread, self.lock, self.holder, self.stack = (
            samples[name].astype(np.int64) for name in names
        )
        self.weight_s = samples["weight_ns"].astype(np.float64) / 1e9
        self.count = samples["count"].astype(np.float64)
        times, self.moment = np.unique(samples["time_ns"], return_inverse=True)
        self.moments = len(times)
        span = max(1, int(times[-1]) + 1 if len(times) else 1)
        self._moment_batch = (times.astype(np.float64) * BATCHES / span).astype(np.int64)
        self._batch = self._moment_batch[self.moment]

    @cached_property
    def about(self) -> dict[str, object]:
        """What the trace says of its samples."""
        about = self.trace.meta.get("samples")
        return about if isinstance(about, dict) else {}

    @property
    def together(self) -> bool:
        """Whether samples of one moment are of all threads."""
        return self.about.get("timed") is not False and not self.about.get("on_cpu_only")

    @property
    def sees_sleep(self) -> bool:
        """Whether threads that sleep have samples, too."""
        return not self.about.get("on_cpu_only")

    @property
    def states_known(self) -> bool:
        """Whether it is known of each sample if the thread ran or slept."""
        return self.about.get("states_known") is not False

    @property
    def pace_known(self) -> bool:
        """Whether it is known how much time a sample stands for."""
        return self.about.get("rate_known") is not False

    def does(self, *doings: Doing) -> Mask:
        """Return which samples are of threads that do one of some things."""
        return np.isin(self.doing, [int(one) for one in doings])

    def threads(self, chosen: Mask) -> set[int]:
        """Return whose the chosen samples are."""
        return {*np.unique(self.thread[chosen]).tolist()}

    def seconds(self, chosen: Mask) -> float:
        """Return the thread time that chosen samples stand for."""
        return float(self.weight_s[chosen].sum())

    def average(self, chosen: Mask) -> float:
        """Return how many threads are in chosen samples, on average over the moments."""
        return float(self.count[chosen].sum()) / max(1, self.moments)

    def share_of(self, chosen: Mask, whole: Mask) -> Share:
        """Return which share of the thread time of `whole` is `chosen`."""
        weight = self.weight_s if self.weight_s.any() else self.count
        return share(weight * (chosen & whole), weight * whole, self._batch)

    def share_of_moments(self, chosen: Mask, *, least: int = 1) -> Share:
        """Return in which share of the moments at least so many threads are in chosen samples."""
        counts = np.bincount(self.moment[chosen], minlength=self.moments)
        hits = (counts >= least).astype(np.float64)
        return share(hits, np.ones(self.moments), self._moment_batch)

    def at_moments_of(self, chosen: Mask) -> Mask:
        """Return all samples of the moments that chosen samples are of."""
        here = np.zeros(self.moments, dtype=np.bool_)
        here[self.moment[chosen]] = True
        mask: Mask = here[self.moment]
        return mask

    def held_by(self, waiting: Mask) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the samples of those who have what others wait for, and how much they wait.

        Positions of the holders' own samples at those moments, each once, and the waiting in
        seconds that it stands for.
        """
        known = waiting & (self.holder != 0)
        wide = int(self.thread.max(initial=0)) + 1
        own = self.moment * wide + self.thread
        order = np.argsort(own, kind="stable")
        wanted = self.moment[known] * wide + self.holder[known]
        at = np.minimum(np.searchsorted(own[order], wanted), max(0, len(own) - 1))
        place = order[at] if len(order) else at
        there = own[place] == wanted if len(order) else np.zeros(0, dtype=np.bool_)
        sums = np.bincount(place[there], weights=self.weight_s[known][there], minlength=len(own))
        found = np.flatnonzero(sums)
        return found.astype(np.int64), sums[found].astype(np.float64)

    def places(
        self, index: npt.NDArray[np.int64], weight_s: npt.NDArray[np.float64]
    ) -> tuple[Party, ...]:
        """Return where the stacks of samples are, by their weight, the most first."""
        whole = float(weight_s.sum())
        by_site: dict[tuple[str, str] | None, dict[int, float]] = {}
        for stack, weight in zip(self.stack[index].tolist(), weight_s.tolist(), strict=True):
            frame = self.site(stack)
            key = None if frame is None else (frame.filename, frame.function)
            stacks = by_site.setdefault(key, {})
            stacks[stack] = stacks.get(stack, 0.0) + weight
        order = sorted(by_site.values(), key=lambda stacks: -sum(stacks.values()))
        found: list[Party] = []
        for stacks in order[:PARTIES]:
            usual = max(stacks, key=lambda one: (stacks[one], -one))
            mine = sum(stacks.values())
            if found and mine < LEAST_PART * whole:
                break
            found.append(
                Party(self.site(usual), self.trace.stack(usual), mine, mine / whole if whole else 0)
            )
        return tuple(found)

    def places_of(self, chosen: Mask) -> tuple[Party, ...]:
        """Return where chosen samples are, by the thread time that they stand for."""
        index = np.flatnonzero(chosen)
        return self.places(index, self.weight_s[index])

    def site(self, stack: int) -> Frame | None:
        """Return the innermost frame of user code of a stack, else the innermost one."""
        frames = self.trace.stack(stack)
        return user_frame(frames) or (frames[0] if frames else None)

    def accused(self, lock: int) -> AccusedLock:
        """Return a lock as findings name it."""
        found = self.trace.lock(lock)
        return AccusedLock(found.label, found.type, found.site, 1)

    def stacks_with(self, functions: Iterable[tuple[str, str]]) -> Mask:
        """Return which samples have a frame of one of some library functions: file's end, name."""
        wanted = [(file, name) for file, name in functions]
        ids = [
            number
            for number in np.unique(self.stack).tolist()
            if any(
                frame.filename.replace("\\", "/").endswith(file)
                and frame.function.rpartition(".")[2] == name
                for frame in self.trace.stack(number)
                for file, name in wanted
            )
        ]
        return np.isin(self.stack, ids)
