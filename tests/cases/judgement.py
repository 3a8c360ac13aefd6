"""Is a diagnosis right? A pure function of the truth about a program and what was said of it.

Places are the same where the line is of the same function (the sidecar may name the `with`, the
diagnosis the call in it), or where a user frame of the party's stack is at the very statement; lock
sites must be the very statement. A party counts if it is the first of its side or has a tenth of
the waiting.

What is judged only if the diagnosis speaks of it: victims and culprits where no lock is at fault,
culprits of a capacity (there is no single one), and the lock where the kind may be about none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidecar import (
    ABOUT_NO_PYTHON_LOCK,
    ACCUSES_NOBODY,
    CONTENTION,
    LOCK_AT_FAULT,
    Bans,
    SourceMap,
    Truth,
)
from source_map import Place, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RIGHT, WRONG, SILENT = "right", "wrong", "silent"
NOTABLE_SHARE = 0.1
"""Share of the waiting from which a party that is not the first is taken for named."""

CULPRIT_IS_NO_CODE = frozenset({"capacity-limit", "native-oversubscription", "idle-wait"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one diagnosis does.

    Attributes
    ----------
    outcome
        `right`; `silent`: it accuses nobody where something is to be said; else `wrong`.
    complaints
        What was expected and what came, one line each.
    remarks
        What is right but less exact than it could be.
    """

    outcome: str
    complaints: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def judge(truth: Truth, sources: SourceMap, diagnosis: Mapping[str, Any]) -> Judgement:
    """Compare a diagnosis (the data of `diagnose --json`) with the truth."""
    findings = [f for f in diagnosis["findings"] if f["severity"] > 0]
    verdict = diagnosis["verdict"]
    complaints = [*_banned(truth.bans, sources, verdict, findings)]
    remarks: list[str] = []
    if verdict not in truth.verdicts:
        gone = bool(truth.gone) and verdict not in LOCK_AT_FAULT
        if not gone:
            complaints.insert(0, f"expected {_either(truth.verdicts)}, got {_told(diagnosis)}")
    elif not truth.gone:
        # The finding of the verdict; `idle-wait` has no severity and is looked for too.
        main = next((f for f in diagnosis["findings"] if f["kind"] == verdict), None)
        if main is not None:
            complaints += _lock(truth, sources, main)
            for side in ("victims", "culprits"):
                _party(truth, sources, main, side, complaints, remarks)
        elif verdict not in ACCUSES_NOBODY:
            complaints.append(f"the verdict {verdict} has no finding")
    complaints += [
        f"expected no {f['kind']} any more, got {_lock_name(f)}"
        for f in findings
        if f["kind"] in truth.gone
        and f["kind"] not in truth.verdicts
        and _about(f, truth.lock_sites, sources)
    ]
    if not complaints:
        return Judgement(RIGHT, (), tuple(remarks))
    silent = verdict in ACCUSES_NOBODY and not ACCUSES_NOBODY & set(truth.verdicts)
    return Judgement(SILENT if silent else WRONG, tuple(complaints), tuple(remarks))


def _lock(truth: Truth, sources: SourceMap, finding: Mapping[str, Any]) -> Iterator[str]:
    site = place_of(finding["lock"]["site"]) if finding["lock"] else None
    if not truth.lock_sites:
        return
    if site is None:
        if truth.lock_at_fault and finding["kind"] not in ABOUT_NO_PYTHON_LOCK:
            yield f"expected the lock of {_either(truth.lock_sites)}, got {_lock_name(finding)}"
    elif not any(sources.same_statement(site, right) for right in truth.lock_sites):
        yield f"expected the lock of {_either(truth.lock_sites)}, got {_lock_name(finding)}"


def _party(
    truth: Truth,
    sources: SourceMap,
    finding: Mapping[str, Any],
    side: str,
    complaints: list[str],
    remarks: list[str],
) -> None:
    expected: tuple[Place, ...] = getattr(truth, side)
    if not expected:
        return
    listed = finding[side]
    notable = [p for i, p in enumerate(listed) if i == 0 or p["share"] >= NOTABLE_SHARE]
    no_code = side == "culprits" and finding["kind"] in CULPRIT_IS_NO_CODE
    if not listed:
        text = f"names no {side}; expected {_places(expected, sources)}"
        optional = no_code or not truth.lock_at_fault
        (remarks if optional else complaints).append(text)
        return
    rank = next((i for i, p in enumerate(notable) if _is_at(p, expected, sources)), None)
    if rank is None:
        text = f"expected {side} {_places(expected, sources)}, got {_parties(notable)}"
        (remarks if no_code else complaints).append(text)
    elif rank:
        remarks.append(f"{side}: {_places(expected, sources)} is only number {rank + 1}")
    elif not any(p is not None and p in expected for p in [place_of(notable[0]["site"])]):
        remarks.append(f"{side}: {_places(expected, sources)} is told as {_parties(notable[:1])}")


def _is_at(party: Mapping[str, Any], expected: Sequence[Place], sources: SourceMap) -> bool:
    site = place_of(party["site"])
    stack = [place_of(frame) for frame in party["stack"]]
    return any(
        (site is not None and sources.same_function(site, right))
        or any(place is not None and sources.same_statement(place, right) for place in stack)
        for right in expected
    )


def _banned(
    bans: Bans, sources: SourceMap, verdict: str, findings: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if verdict in bans.verdicts:
        yield f"must not say {verdict}"
    for finding in findings:
        kind = finding["kind"]
        if kind in bans.kinds:
            yield f"must not say {kind}, says it of {_lock_name(finding)}"
        elif kind in CONTENTION and (
            bans.contention or (bans.contention_at and _about(finding, bans.contention_at, sources))
        ):
            yield f"must not accuse {_lock_name(finding)} of contention, says {kind}"
        first = place_of(finding["culprits"][0]["site"]) if finding["culprits"] else None
        if first is not None and sources.function(first).rpartition(".")[2] in bans.culprits:
            yield f"must not blame {sources.function(first)}, does so in {kind}"
        summary = finding["summary"].lower()
        yield from (
            f"must not say {words!r}, says it" for words in bans.phrases if words in summary
        )


def _about(
    finding: Mapping[str, Any], sites: Sequence[Place] | frozenset[Place], sources: Any
) -> bool:
    if not finding["lock"] or not sites:
        return True
    site = place_of(finding["lock"]["site"])
    return site is None or any(sources.same_statement(site, place) for place in sites)


def _told(diagnosis: Mapping[str, Any]) -> str:
    main = next(iter(diagnosis["findings"]), None)
    if main is None:
        return str(diagnosis["verdict"])
    parties = [
        f"{side} {_parties(main[side][:1])}" for side in ("victims", "culprits") if main[side]
    ]
    others = [f["kind"] for f in diagnosis["findings"][1:]]
    more = f"; also {', '.join(others)}" if others else ""
    return f"{diagnosis['verdict']} ({', '.join([_lock_name(main), *parties])}{more})"


def _lock_name(finding: Mapping[str, Any]) -> str:
    lock = finding["lock"]
    if not lock:
        return "no lock"
    site = place_of(lock["site"])
    return f"{lock['type']} {f'made at {site}' if site else lock['name']}"


def _parties(parties: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{p['site']['function']} {place_of(p['site'])} ({p['share']:.0%})" if p["site"] else "?"
        for p in parties
    )


def _places(expected: Sequence[Place], sources: SourceMap) -> str:
    return " or ".join(f"{sources.function(place)} {place}".strip() for place in expected)


def _either(values: Sequence[object]) -> str:
    return " or ".join(map(str, values))
