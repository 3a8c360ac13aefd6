"""What a lock costs the program: its share of the critical path, where that is known.

Threads may wait for one lock all day and delay nobody who matters, and for another one briefly,
where all wait for them. So it is the critical path that ranks findings about locks, not the total
wait. Whether something is said does not depend on it: it judges nothing anew and takes nothing
back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis import native_lock
from contention_lab.diagnosis.thresholds import LARGEST_SEVERITY, LEAST_WAIT_SHARE, OFF_THE_PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import AccusedLock, Finding

CONTENTION: Final = frozenset(
    {
        *("serialised-by-lock", "held-across-io", "slow-holder-elsewhere", "spin-collapse"),
        *("async-lock-across-await", "capacity-limit", "unfair-lock", "writer-starvation"),
    }
)
"""Kinds about waiting for a lock that others hold, which the critical path can be on. Native locks,
which the threads on it wait for as they run, are told by their own share."""
ON_PATH: Final = CONTENTION | {native_lock.KIND}

SPINS: Final = "spin-collapse"
"""Its severity is what parking would bring, of which the path says nothing; beside it that of the
same lock is what parking would leave."""
NEEDS_CORES: Final = frozenset({"serialised-by-lock", "capacity-limit"})
"""Those of which it is said that threads could work at a time, which takes cores that are idle."""


def by_path(file: CaseFile, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings with their share of the critical path, the most severe first.

    The share is stated only where the path tells what ended the program, and knows the waiting.
    Where that is so, and it is a tenth or more, it is the severity of a lock; the time of its
    users, by which it is accused, is among the evidence. What the finding takes off (for cores that
    have no time left) stays off. Beside a collapse of spinning severities stay.

    Where they accuse two locks or more of making threads wait, and one of them takes a tenth of the
    critical path or more, then

    - the severity of a lock is its share of the critical path; of several findings about it, that
      of the most severe one, and the others in proportion;
    - one that is not on the path to that extent comes after those that are.

    Otherwise severities stay: where the end of the program does not depend on what is waited for (a
    service until it is stopped), the time of its users is what it costs.
    """
    shares: dict[AccusedLock | None, float] = {
        finding.lock: file.path_share([finding.lock])
        for finding in findings
        if finding.kind in CONTENTION and finding.lock is not None
    }
    native = {finding.lock for finding in findings if finding.kind == native_lock.KIND}
    if native - {None}:
        known = native_lock.path_shares(file).items()
        shares.update({lock: share for lock, share in known if lock in native})
    ranked = [
        _with_share(finding, shares) if file.path.is_telling else finding for finding in findings
    ]
    limit = max(shares.values(), default=0.0)
    if len(shares) > 1 and limit >= LEAST_WAIT_SHARE:
        worst = {
            lock: max(finding.severity for finding in ranked if finding.lock == lock)
            for lock in shares
        }
        ranked = [_by_share(finding, shares, worst, limit) for finding in ranked]
    elif file.path.is_telling and not any(one.kind == SPINS for one in ranked):
        ranked = [_of_path(finding, file.program.idle_share) for finding in ranked]
    return tuple(sorted(ranked, key=lambda finding: -finding.severity))


def _with_share(finding: Finding, shares: dict[AccusedLock | None, float]) -> Finding:
    if finding.lock not in shares or finding.kind not in ON_PATH or _is_only_tried(finding):
        return finding
    return replace(finding, evidence={**finding.evidence, "path_share": shares[finding.lock]})


def _of_path(finding: Finding, idle_share: float) -> Finding:
    """Return a finding with its share of the critical path as severity, if that is known."""
    share = finding.evidence.get("path_share")
    wait_s, blamed_s = (finding.evidence.get(name) or 0.0 for name in ("wait_s", "blamed_s"))
    of_users = (finding.evidence.get("wait_share") or 0.0) * blamed_s / (wait_s or 1.0)
    if share is not None and share >= LEAST_WAIT_SHARE and finding.kind == native_lock.KIND:
        return replace(finding, severity=min(share, LARGEST_SEVERITY, _idle_share(finding)))
    if share is None or share < LEAST_WAIT_SHARE or not of_users:
        return finding
    most = min(LARGEST_SEVERITY, idle_share if finding.kind in NEEDS_CORES else 1.0)
    left = min(1.0, finding.severity / min(of_users, most)) if most else 0.0
    return replace(finding, severity=left * min(share, most))


def _idle_share(finding: Finding) -> float:
    """Return the share of the cores that are idle while threads wait for a native lock; 1 else."""
    idle = finding.evidence.get("idle_cores_share")
    return 1.0 if idle is None else float(idle)


def _is_only_tried(finding: Finding) -> bool:
    """Tell whether most waiting for a lock was between failed tries, which are on no path."""
    tried, contended = (finding.evidence.get(name) or 0 for name in ("failed_tries", "contended"))
    return tried > contended


def _by_share(
    finding: Finding,
    shares: dict[AccusedLock | None, float],
    worst: dict[AccusedLock | None, float],
    limit: float,
) -> Finding:
    lock = finding.lock
    if lock not in shares or finding.kind not in ON_PATH or not worst[lock]:
        return finding
    share = shares[lock]
    if share < LEAST_WAIT_SHARE:
        share = min(worst[lock], OFF_THE_PATH * limit)
    most = min(LARGEST_SEVERITY, _idle_share(finding))
    severity = finding.severity / worst[lock] * min(share, most)
    return replace(finding, severity=severity)
