"""A finding as lines of text: kind and lock, who waits, who holds, figures, remedies.

It takes the JSON form, so that what the terminal shows is what machines get.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from contention_lab.diagnosis.wording import duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARTIES: Final = 3
"""Victims and culprits shown, at most."""

_LEAST_PART: Final = 0.01
"""Times below this share of the waiting are not worth a reader's eye."""

_LOCK_FIGURES: Final = {
    "wait_s": "waited",
    "spin_s": "spinning",
    "gil_s": "GIL afterwards",
    "hold_s": "held",
    "longest_hold_s": "longest hold",
    "longest_wait_s": "longest wait",
}
"""What is said of every lock, where it is not zero, before the figures of a kind."""

_OF_LOCKS: Final = frozenset(
    {
        *_LOCK_FIGURES,
        *("acquires", "contended", "timed_out", "failed_tries", "open_waits", "missing_waits"),
        *("park_s", "spin_cpu_s", "utilisation", "users", "wait_share", "blamed_s"),
        *("holder_gil_s", "hand_off_s", "average_waiters"),
    }
)


def finding_lines(finding: Mapping[str, Any], position: int) -> Iterator[str]:
    """Yield the lines of one finding.

    Parameters
    ----------
    finding
        `Finding.to_json()`.
    position
        Its number in the list, from 1.
    """
    lock = finding["lock"]
    severity = f", {percent(finding['severity'])} of the run" if finding["severity"] else ""
    about = f": {lock['name']} ({lock['type']})" if lock else ""
    yield f"{position}. {finding['kind']}{about}{severity}"
    if position > 1:
        yield f"   {finding['summary']}"
    for role, verb in (("victims", "waits"), ("culprits", "causes")):
        for party in finding[role][:PARTIES]:
            time = f"{percent(party['share']):>6}  {duration(party['thread_s']):>7}"
            yield f"   {verb:<8} {time}  {_place(party['site'])}{_taken(party)}"
    for figures in (_lock_figures(finding["evidence"]), _own_figures(finding["evidence"])):
        if figures:
            yield f"   evidence {figures}"
    for remedy in finding["remedies"]:
        yield f"   remedy   {remedy['text']}{_gain(remedy)}"


def _lock_figures(evidence: Mapping[str, Any]) -> str:
    least_s = _LEAST_PART * (evidence.get("wait_s") or 0.0)
    said = [
        f"{words} {duration(evidence[key])}"
        for key, words in _LOCK_FIGURES.items()
        if evidence.get(key) and evidence[key] >= least_s
    ]
    if evidence.get("acquires") and evidence.get("contended") is not None:
        said.append(f"contended {evidence['contended']:,} of {evidence['acquires']:,} acquires")
    said += [
        f"{evidence[key]:,} {words}"
        for key, words in (("failed_tries", "failed tries"), ("timed_out", "timed out"))
        if evidence.get(key)
    ]
    return ", ".join(said)


def _own_figures(evidence: Mapping[str, Any]) -> str:
    return ", ".join(
        _figure(key, value)
        for key, value in evidence.items()
        if key not in _OF_LOCKS and value is not None
    )


def _figure(key: str, value: Any) -> str:
    for suffix in ("_share", "_s", "_ns"):
        if key.endswith(suffix) and isinstance(value, (int, float)):
            words = key.removesuffix(suffix).replace("_", " ")
            if suffix == "_share":
                return f"{words} {percent(value)}"
            return f"{words} {duration(value if suffix == '_s' else value / 1e9)}"
    words = key.replace("_", " ")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{words} {value}"
    return f"{words} {value:,}" if isinstance(value, int) else f"{words} {number(value)}"


def _gain(remedy: Mapping[str, Any]) -> str:
    low, high, speedup = (remedy[key] for key in ("speedup_low", "speedup_high", "speedup"))
    if speedup is not None:
        return f" ({number(speedup)} times as fast; {number(low)} to {number(high)})"
    return f" (at most {number(high)} times as fast)" if high and high >= 1.05 else ""


def _taken(party: Mapping[str, Any]) -> str:
    """Say where a culprit took the lock, if not in the function it was executing."""
    at, site = party.get("acquired"), party["site"]
    if not at or not site or (at["file"], at["function"]) == (site["file"], site["function"]):
        return ""
    return f", the lock taken in {_place(at)}"


def _place(site: Mapping[str, Any] | None) -> str:
    if site is None:
        return "code outside the program"
    return f"{site['function']} ({_from_here(site['file'])}:{site['line']})"


def _from_here(file: str) -> str:
    """Return a path as a reader in the current folder would type it."""
    path = PurePath(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
