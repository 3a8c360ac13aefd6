"""The figures that a finding rests on, as words: `waited 4.8 s`, `contended 60 of 2,247 acquires`.

Names of figures carry their unit, so a new figure of a finding needs no line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contention_lab.diagnosis.wording import duration, number, percent
from contention_lab.trace.not_seen import FUTEX, UNCONTENDED_UNSEEN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


_LEAST_SHARE: Final = 0.01
"""Share of the waiting from which a party that is not the first is worth a line."""

_SAME_SHARE: Final = 0.005
"""Shares that differ by less are the same figure, rounded for the eye."""


def severity_said(finding: Mapping[str, Any]) -> str:
    """Return how much a finding costs, and of what; empty if it costs nothing.

    Parameters
    ----------
    finding
        `Finding.to_json()`. Only where severity is the share of the critical path it is one of the
        run; else it is of the time of those that the finding is about.
    """
    severity = finding.get("severity") or 0.0
    if not severity:
        return ""
    on_path = (finding.get("evidence") or {}).get("path_share")
    if on_path is not None and abs(on_path - severity) < _SAME_SHARE:
        return f"{percent(severity)} of the run"
    return f"severity {percent(severity)}"


def worth_showing(parties: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Return the parties to show: the first one, and which of the next have a hundredth or more.

    Parameters
    ----------
    parties
        Of `Finding.to_json()`, the largest share first.
    most
        How many at most.
    """
    return [
        party
        for place, party in enumerate(parties[:most])
        if not place or party["share"] >= _LEAST_SHARE
    ]


def taken_elsewhere(acquired: Mapping[str, Any] | None, site: Mapping[str, Any] | None) -> bool:
    """Tell whether a culprit took the lock in another function than it was executing."""
    if not acquired or not site:
        return False
    return any(acquired[key] != site[key] for key in ("file", "function"))


def lock_figures(
    evidence: Mapping[str, Any], lock: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return what is said of any lock.

    Parameters
    ----------
    evidence
        `Finding.evidence`.
    lock
        `lock` of `Finding.to_json()`. Of a word in the kernel only those acquires are seen that
        had to wait.
    """
    least_s = _LEAST_PART * (evidence.get("wait_s") or 0.0)
    said = [
        f"{words} {duration(evidence[key])}"
        for key, words in _LOCK_FIGURES.items()
        if evidence.get(key) and evidence[key] >= least_s
    ]
    if evidence.get("acquires") and evidence.get("contended") is not None:
        of_futex = lock is not None and lock.get("type") == FUTEX
        said.append(_all_contended(evidence) if of_futex else _contended(evidence))
    said += [
        f"{evidence[key]:,} {words}"
        for key, words in (("failed_tries", "failed tries"), ("timed_out", "timed out"))
        if evidence.get(key)
    ]
    return tuple(said)


def _all_contended(evidence: Mapping[str, Any]) -> str:
    return f"contended {evidence['contended']:,} ({UNCONTENDED_UNSEEN})"


def _contended(evidence: Mapping[str, Any]) -> str:
    """Say how many attempts had to wait; those that gave up are no acquires."""
    contended, acquires = evidence["contended"], evidence["acquires"]
    gave_up = sum(evidence.get(name) or 0 for name in ("timed_out", "open_waits"))
    if not gave_up and contended <= acquires:
        return f"contended {contended:,} of {acquires:,} acquires"
    return f"contended {contended:,} of {max(contended, acquires + gave_up):,} attempts"


def own_figures(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is said of this kind of finding only, from `Finding.evidence`."""
    return tuple(
        _interval(key, evidence) if f"{key}_low" in evidence else _figure(key, value)
        for key, value in evidence.items()
        if key not in _OF_LOCKS and value is not None and not _is_end(key, evidence)
    )


def _is_end(key: str, evidence: Mapping[str, Any]) -> bool:
    """Tell whether a figure is an end of another's interval."""
    stem, _, end = key.rpartition("_")
    return end in ("low", "high") and stem in evidence


def _interval(key: str, evidence: Mapping[str, Any]) -> str:
    low, high = (percent(evidence[f"{key}_{end}"]) for end in ("low", "high"))
    words = key.removesuffix("_share").replace("_", " ")
    return f"{words} {percent(evidence[key])} ({low.removesuffix(' %')} to {high})"


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
