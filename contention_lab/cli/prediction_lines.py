"""A prediction as lines of text: the verdict, the recorded run, curves, remedies, warnings.

It takes the JSON form, so that what the terminal shows is what machines get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contention_lab.diagnosis.wording import counted, number, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NOTHING: Final = 1.05
"""A remedy that brings less is said to bring next to nothing."""
BUSY: Final = 0.5
"""A lock that is owned for less of the time has not taken over."""
UNEXPLAINED: Final = 0.4
"""A model that misses the recorded run by more says nothing about others."""
WIDEST: Final = 30
_LIMITS: Final = {
    "threads": "its threads",
    "cores": "the cores",
    "gil": "the GIL",
    "stretch": "one long stretch",
}


def summary(found: Mapping[str, Any]) -> str:
    """Return the answer as a sentence."""
    where = f"{counted(found['compared_at'], 'thread')} on {counted(found['cores'], 'core')}"
    free = "" if found["gil"] else ", without the GIL"
    best = next(iter(found["remedies"]), None)
    if best is None:
        first, last = found["as_recorded"][0], found["as_recorded"][-1]
        return (
            f"no lock to treat: {seconds(first['time_s'])} with {first['threads']}, "
            f"{seconds(last['time_s'])} with {counted(last['threads'], 'thread')}{free}"
        )
    gain, lock = best["gain"], found["lock"]["name"]
    if gain["times"] < NOTHING:
        return (
            f"no remedy for `{lock}` brings more than {number(gain['bound'])} times with "
            f"{where}{free}: {_limit(_at(best['points'], found['compared_at']))} limits it then"
        )
    if best["at_best"]:
        return (
            f"`{best['fix']}` makes it at best {number(gain['times'])} times as fast with "
            f"{where}{free}: {best['warning']}"
        )
    sold = "" if best["lifts_serial_share"] else "; what is serial stays serial"
    return (
        f"`{best['fix']}` makes it {number(gain['times'])} times as fast "
        f"({number(gain['low'])} to {number(gain['high'])}, never more than "
        f"{number(gain['bound'])}) with {where}{free}{sold}"
    )


def no_gil(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what takes over without the GIL: the lock, the ceiling, what to fix first."""
    last = found["as_recorded"][-1]
    owned = {name: share for name, share in last["locks_used"].items() if name != "GIL"}
    lock = max(owned, key=lambda name: owned[name], default=None)
    first = found["as_recorded"][0]
    ceiling = max(first["time_s"] / point["bound_s"] for point in found["as_recorded"])
    if lock is not None and owned[lock] >= BUSY:
        yield (
            f"without the GIL `{lock}` takes over: owned {percent(owned[lock])} of the time with "
            f"{counted(last['threads'], 'thread')}; fix it first"
        )
    else:
        yield f"without the GIL no lock takes over: {_limit(last)} limits it"
    yield (
        f"ceiling: {number(ceiling)} times as fast as {counted(first['threads'], 'thread')}, set "
        f"by {_limit(last)}; Python code is taken to be as fast as with the GIL"
    )


def recorded_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield whether the model explains what was recorded."""
    run = found["recorded"]
    within = percent(max(abs(run["error"]), 0.01))
    yield (
        f"the model explains the recorded run within {within}: "
        f"{seconds(run['predicted_s'])} predicted, {seconds(run['time_s'])} recorded "
        f"({counted(run['threads'], 'thread')}, {counted(run['cores'], 'core')})"
    )
    if abs(run["error"]) > UNEXPLAINED:
        yield (
            "so it does not explain this run: conditions, signals, spinning in Python and what "
            "threads hand to each other are not simulated; believe the bounds only"
        )
    elif run["missed"]:
        yield "that is more than its interval, so all intervals below are wider by as much"


def curve_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of the batch as it is."""
    yield f"{'threads':>7} {'time':>8} {'80 % interval':>18} {'bound to MVA':>18}  limited by"
    for point in found["as_recorded"]:
        low, high = seconds(point["low_s"]), seconds(point["high_s"])
        bound, mean = seconds(point["bound_s"]), seconds(point["mean_value_analysis_s"])
        yield (
            f"{point['threads']:>7} {seconds(point['time_s']):>8} {f'{low} to {high}':>18} "
            f"{f'{bound} to {mean}':>18}  {_limit(point)}"
        )


def remedy_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of remedies, and what to beware of."""
    remedies = found["remedies"]
    if not remedies:
        return
    shown = _columns([point["threads"] for point in found["as_recorded"]], found["compared_at"])
    width = max(14, *(len(_cut(one["fix"])) for one in remedies))
    heads = "".join(f"{f'T({count})':>9}" for count in shown)
    yield (
        f"{'remedy':<{width}} {'times':>6} {'80 % interval':>14} {'at most':>8}{heads}  serial part"
    )
    for one in remedies:
        gain = one["gain"]
        interval = f"{number(gain['low'])} to {number(gain['high'])}"
        times = "".join(f"{seconds(_at(one['points'], count)['time_s']):>9}" for count in shown)
        serial = (
            "less at best"
            if one["at_best"]
            else "less"
            if one["lifts_serial_share"]
            else "the same"
        )
        yield (
            f"{_cut(one['fix']):<{width}} {number(gain['times']):>6} {interval:>14} "
            f"{number(gain['bound']):>8}{times}  {serial}"
        )
    yield ""
    told = dict.fromkeys((one["kind"], one["warning"]) for one in remedies)
    for kind, warning in told:
        yield f"beware, {kind}: {warning}"


def _columns(threads: Sequence[int], at: int) -> list[int]:
    """Return the thread counts shown beside remedies: the ends, and the one compared."""
    return sorted({threads[0], at, threads[-1]})


def _at(points: Sequence[Mapping[str, Any]], threads: int) -> Mapping[str, Any]:
    return next(point for point in points if point["threads"] == threads)


def _limit(point: Mapping[str, Any]) -> str:
    if point["limited_by"] == "lock":
        return f"`{point['limiting_lock']}`"
    return _LIMITS[point["limited_by"]]


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
