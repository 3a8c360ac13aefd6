"""A finding as lines of text: kind and lock, who waits, who holds, figures, remedies.

It takes the JSON form, so that what the terminal shows is what machines get.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from contention_lab.diagnosis.figures import (
    lock_figures,
    own_figures,
    severity_said,
    taken_elsewhere,
    worth_showing,
)
from contention_lab.diagnosis.wording import duration, gain_said, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PARTIES: Final = 3
"""Victims and culprits shown, at most."""


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
    severity = severity_said(finding)
    about = f": {lock['name']} ({lock['type']})" if lock else ""
    yield ", ".join(filter(None, (f"{position}. {finding['kind']}{about}", severity)))
    if position > 1:
        yield f"   {finding['summary']}"
    for role, verb in (("victims", "waits"), ("culprits", "causes")):
        for party in worth_showing(_merged(finding[role]), PARTIES):
            time = f"{percent(party['share']):>6}  {duration(party['thread_s']):>7}"
            yield f"   {verb:<8} {time}  {_place(party['site'])}{_taken(party)}"
    for figures in (lock_figures(finding["evidence"], lock), own_figures(finding["evidence"])):
        if figures:
            yield f"   evidence {', '.join(figures)}"
    for remedy in finding["remedies"]:
        yield f"   remedy   {remedy['text']}{_gain(remedy)}"


def gil_lines(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line about the GIL and where its figures are from; none where there are none.

    Parameters
    ----------
    diagnosis
        `Diagnosis.to_json()`.
    """
    share, wait_s = (diagnosis["totals"][name] for name in ("gil_share", "gil_wait_total_s"))
    if diagnosis["gil_source"] is None or share is None:
        return
    held = f"GIL: held for {percent(share)} of the time"
    if diagnosis["gil_source"] == "samples" or wait_s is None:
        yield f"{held} (sampled, since the preloaded layer was not there)"
    else:
        yield f"{held}, waited for {duration(wait_s)} (every wait, by the preloaded layer)"


def _merged(parties: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parties with those together that read alike: without lines, one function's."""
    together: dict[tuple[Any, ...], dict[str, Any]] = {}
    for party in parties:
        site = party["site"]
        key = (_place(site), _taken(party)) if site is not None else (id(party),)
        found = together.setdefault(key, {**party, "share": 0.0, "thread_s": 0.0})
        found["share"] += party["share"]
        found["thread_s"] += party["thread_s"]
    return sorted(together.values(), key=lambda party: -party["share"])


def _gain(remedy: Mapping[str, Any]) -> str:
    gain = gain_said(*(remedy[key] for key in ("speedup", "speedup_low", "speedup_high")))
    return f" ({gain})" if gain else ""


def _taken(party: Mapping[str, Any]) -> str:
    """Say where a culprit took the lock, if not in the function it was executing."""
    at = party.get("acquired")
    return f", the lock taken in {_place(at)}" if taken_elsewhere(at, party["site"]) else ""


def _place(site: Mapping[str, Any] | None) -> str:
    if site is None:
        return "code outside the program"
    return f"{site['function']} ({_from_here(site['file'])}:{site['line']})"


def _from_here(file: str) -> str:
    """Return a path as a reader in the current folder would type it."""
    path = PurePath(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
