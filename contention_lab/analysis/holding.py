"""What threads did while they held a lock: the time of each hold that blocked somebody, in parts.

Measured are the waits of the holder within the hold (`lock`, `others`, and of `gil` what followed
them), the wait for the GIL at its start, blocking calls, where the layer below Python saw them,
and, where the recorder took it, the holder's CPU time. The rest is divided as samples of the holder
say: those taken within the hold, or, if these are too few, within holds of similar length at the
same place. Without samples, CPU time still tells `python` from the rest; the rest is `blocked` only
for as long as nobody else had the GIL and the scheduler did not take the holder's CPU. Where the
layer below Python counted how often threads got the GIL, and that is less often than there are
similar holds, the other holds never let it go: they ran Python. What nothing tells is `unknown`.

The parts of a hold add up to it, to the nanosecond. A thread that holds two locks does the same
under both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.analysis.intervals import hold_spans
from contention_lab.analysis.nested_waits import blocked_calls, nested_waits
from contention_lab.analysis.overlap import on_one_line
from contention_lab.analysis.readiness import ready_to_run
from contention_lab.analysis.samples_in_holds import CALLS, SamplesInHolds, Seen, alike_key
from contention_lab.trace import Call, GilFlag, HoldFlag

if TYPE_CHECKING:
    import numpy.typing as npt

    from contention_lab.analysis.intervals import Spans
    from contention_lab.trace import Trace
    from contention_lab.trace.layer_schema import WorldCall

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

PARTS: Final = (
    "python",
    "native",
    "blocked",
    "native_lock",
    "lock",
    "others",
    "gil",
    "preempted",
    "unknown",
)
"""What a holder may be doing: running Python; running without the GIL; in a system call (input,
output, sleep); asleep on a lock of the C library; waiting for another lock; for events, items or
threads; for the GIL; for a CPU that was taken from it or that it did not get; not known."""


@dataclass(frozen=True, slots=True)
class HeldTime:
    """Time that holders spent, in seconds, by what they did.

    Attributes
    ----------
    parts
        By name, see `PARTS`.
    calls
        Of `blocked`: by kind of system call, where samples tell.
    world
        Of `blocked`: by call of the C library, as far as recorded.
    samples
        How many samples were taken within the holds.
    native_samples
        Of them: running without the GIL.
    """

    parts: dict[str, float]
    calls: dict[Call, float]
    samples: int
    native_samples: int
    world: dict[WorldCall, float] = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        """All parts together."""
        return sum(self.parts.values())

    @property
    def own_s(self) -> float:
        """Without waiting for the GIL or a CPU, and without what is not known."""
        return self.total_s - sum(self.parts[name] for name in ("gil", "preempted", "unknown"))

    def share(self, *names: str) -> float:
        """Return the share of parts in all time that is known."""
        known_s = self.total_s - self.parts["unknown"]
        return sum(self.parts[name] for name in names) / known_s if known_s > 0 else 0.0

    def own_share(self, *names: str) -> float:
        """Return the share of parts in the time that the holder's code is responsible for."""
        return sum(self.parts[name] for name in names) / self.own_s if self.own_s > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """The time of recorded holds, in parts.

    Attributes
    ----------
    index
        Positions in `trace.holds`, ascending.
    parts_ns
        Shape (holds, parts), int64, in the order of `index` and `PARTS`; the sum of a row is the
        length of the hold. Holds that nobody waited for are all `unknown`.
    entry_gil_ns
        Of `gil`: before the hold's own code could go on, int64.
    calls
        Shape (holds, calls): share of `blocked` by `Call`; row sums are 1, or 0 where not sampled.
    samples, native_samples
        How many samples were taken within each hold; of them, running without the GIL.
    world_ns
        Of `blocked`: by call of the C library, as far as recorded, in the order of `index`.
    """

    index: Integers
    parts_ns: Integers
    entry_gil_ns: Integers
    calls: Floats
    samples: Integers
    native_samples: Integers
    world_ns: dict[WorldCall, Floats]

    def of(self, hold: npt.NDArray[np.integer[Any]], ns: Integers | Floats) -> HeldTime:
        """Divide time that falls to holds, without their wait for the GIL at the start.

        Parameters
        ----------
        hold
            Positions in `trace.holds`, all of them in `index`.
        ns
            The time for each, as what it cost others.
        """
        row = np.searchsorted(self.index, hold)
        parts = self.parts_ns[row].astype(np.float64)
        parts[:, PARTS.index("gil")] -= self.entry_gil_ns[row]
        whole = parts.sum(axis=1)
        weight = np.divide(ns, whole, out=np.zeros(len(hold)), where=whole > 0)
        sums = (parts * weight[:, None]).sum(axis=0) / 1e9
        blocked = parts[:, PARTS.index("blocked")] * weight
        calls = (self.calls[row] * blocked[:, None]).sum(axis=0) / 1e9
        return HeldTime(
            parts=dict(zip(PARTS, sums.tolist(), strict=True)),
            calls={call: float(calls[call]) for call in Call if calls[call] > 0},
            samples=int(self.samples[row].sum()),
            native_samples=int(self.native_samples[row].sum()),
            world={
                call: float((of_hold[row] * weight).sum()) / 1e9
                for call, of_hold in self.world_ns.items()
            },
        )


def holding(trace: Trace, chosen: Integers | None = None) -> Holding:
    """Divide the time of recorded holds.

    Parameters
    ----------
    trace
        A trace.
    chosen
        Positions in `trace.holds` of the only holds to divide; all by default. The others still
        help to tell what similar ones were spent on.
    """
    every = hold_spans(trace)
    index = np.arange(len(every.index)) if chosen is None else np.unique(chosen)
    blocking = (trace.hold_columns["flags"] & int(HoldFlag.UNCONTENDED) == 0) & (
        every.length_ns > 0
    )
    ready = np.clip(ready_to_run(trace), every.start_ns, every.end_ns)
    mine = np.flatnonzero(blocking[index])
    at = index[mine]
    holds, begin = every.where(at), ready[at]
    parts = np.zeros((len(index), len(PARTS)), dtype=np.int64)
    parts[:, PARTS.index("unknown")] = every.length_ns[index]
    entry = np.zeros(len(index), dtype=np.int64)
    calls = np.zeros((len(index), CALLS))
    count, native = np.zeros((2, len(index)), dtype=np.int64)
    entry[mine] = begin - holds.start_ns
    nested = nested_waits(trace, holds, begin)
    sampled = SamplesInHolds(trace, every, ready, blocking, at)
    divided = np.zeros((len(mine), len(PARTS)))
    rest = (holds.end_ns - begin).astype(np.float64)
    for name, ns in nested.items():
        divided[:, PARTS.index(name)] = ns
        rest -= ns
    for name, values in _divided(trace, holds, begin, rest, sampled).items():
        divided[:, PARTS.index(name)] += values
    world = blocked_calls(trace, holds, begin)
    _seen_blocked(divided, rest, sum(world.values(), np.zeros(len(mine))))
    divided[:, PARTS.index("gil")] += entry[mine]
    # Rounding the running sum instead of each part makes the sum exact.
    until = np.rint(np.cumsum(divided, axis=1)).astype(np.int64)
    until[:, -1] = holds.length_ns
    parts[mine] = np.diff(np.minimum(until, until[:, -1:]), axis=1, prepend=0)
    calls[mine] = sampled.calls
    count[mine], native[mine] = sampled.count, sampled.native
    world_ns = {call: np.zeros(len(index)) for call in world}
    for call, ns in world.items():
        world_ns[call][mine] = ns
    for array in (parts, entry, calls, count, native, *world_ns.values()):
        array.setflags(write=False)
    return Holding(index, parts, entry, calls, count, native, world_ns)


def _seen_blocked(divided: Floats, rest: Floats, recorded_ns: Floats) -> None:
    """Let holds be blocked for at least as long as is recorded; what is guessed gives way."""
    blocked = PARTS.index("blocked")
    guessed = [PARTS.index(name) for name in ("python", "native", "native_lock", "preempted")]
    divided[:, blocked] = np.maximum(divided[:, blocked], np.minimum(recorded_ns, rest))
    whole = divided[:, guessed].sum(axis=1)
    left = np.maximum(rest - divided[:, blocked], 0.0)
    kept = np.divide(left, whole, out=np.ones(len(rest)), where=whole > left)
    divided[:, guessed] *= kept[:, None]


def _divided(
    trace: Trace, holds: Spans, ready: Integers, rest: Floats, sampled: SamplesInHolds
) -> dict[str, Floats]:
    """Return what was done in the time of holds outside of recorded waits."""
    records = trace.hold_columns[holds.index]
    measured = records["cpu_ns"] > 0
    weight = sampled.weight.sum(axis=1)
    known = weight > 0
    share = np.divide(
        sampled.weight, weight[:, None], out=np.zeros_like(sampled.weight), where=known[:, None]
    )
    running = share[:, Seen.PYTHON] + share[:, Seen.NATIVE]
    # Who is in a recorded call is blocked there, though it may run in the kernel or lack a core.
    blocked = share[:, Seen.BLOCKED] + share[:, Seen.CALLING]
    asleep = blocked + share[:, Seen.NATIVE_LOCK] + share[:, Seen.GIL]
    on_cpu = running + share[:, Seen.CALLING]
    outside = np.divide(running, on_cpu, out=np.ones(len(rest)), where=on_cpu > 0)
    on = np.where(measured, np.minimum(records["cpu_ns"], rest) * outside, rest * running)
    off = rest - on
    native = share[:, Seen.NATIVE]
    native_of_on = np.divide(native, running, out=np.zeros(len(rest)), where=running > 0)
    # On the books of the scheduler, but not on a CPU; of sleepers only what samples cannot explain.
    taken = records["preemptions"] > 0
    displaced = np.where(measured & known, np.clip(rest * running - on, 0.0, off), 0.0)
    displaced = np.where(measured & known & (asleep == 0), off, displaced)
    displaced = np.where(taken | (asleep == 0), displaced, 0.0)
    left = off - displaced
    parts = {
        "python": on * (1.0 - native_of_on),
        "native": on * native_of_on,
        "preempted": displaced,
    }
    for name, seen in (
        ("blocked", blocked),
        ("native_lock", share[:, Seen.NATIVE_LOCK]),
        ("gil", share[:, Seen.GIL]),
    ):
        parts[name] = left * np.divide(seen, asleep, out=np.zeros(len(rest)), where=asleep > 0)
    alone = measured & ~known & ~taken
    parts["blocked"] += np.where(alone, left * _gil_free(trace, holds, ready), 0.0)
    unseen = ~known & ~measured
    if unseen.any():
        parts["python"][unseen] += rest[unseen] * _gil_kept(trace, holds.where(unseen))
    return parts


def _gil_kept(trace: Trace, holds: Spans) -> Floats:
    """Return for each hold the least share of similar ones in which the GIL was never let go.

    On one core no sample falls into a short hold: the sampler runs only when the holder does not.
    But whoever lets the GIL go in a hold has to get it again.
    """
    # Tasks hold locks while others run: of them, and of threads that nobody counted, none is said.
    counted = np.isin(trace.gil_totals["thread"], holds.thread)
    sites = trace.hold_columns["site"][holds.index]
    _, alike, count = np.unique(
        alike_key(sites, holds.length_ns), return_inverse=True, return_counts=True
    )
    kept = np.maximum(0.0, 1.0 - float(trace.gil_totals["holds"][counted].sum()) / count)[alike]
    kept[~np.isin(holds.thread, trace.gil_totals["thread"][counted])] = 0.0
    return kept


def _gil_free(trace: Trace, holds: Spans, ready: Integers) -> Floats:
    """Return for each hold how much of it nobody else had the GIL, 0 where that is not known."""
    if not len(trace.gil):
        has_gil = trace.meta.get("python", {})
        free = isinstance(has_gil, dict) and has_gil.get("gil") is False
        return np.full(len(holds.index), float(free))
    time = trace.gil["time_ns"].astype(np.int64)
    taken = (trace.gil["flags"] & int(GilFlag.HELD) != 0).astype(np.int64)
    holder = trace.gil["holder"].astype(np.int64)
    first, last = np.searchsorted(time, ready), np.searchsorted(time, holds.end_ns)
    until = np.concatenate([[0], np.cumsum(taken)])
    held = until[last] - until[first]
    # Those of the holder itself: samples of one thread are neighbours when sorted by it.
    order = np.argsort(holder, kind="stable")
    key_time, key_start, key_end = on_one_line(
        (holder[order], time[order]), (holds.thread, ready), (holds.thread, holds.end_ns)
    )
    mine = np.concatenate([[0], np.cumsum(taken[order])])
    own = mine[np.searchsorted(key_time, key_end)] - mine[np.searchsorted(key_time, key_start)]
    looks = last - first
    free_share: Floats = 1.0 - np.divide(
        held - own, looks, out=np.ones(len(looks)), where=looks > 0
    )
    return free_share
