"""Which findings are said, and in which order.

It compares findings with one another and looks at no trace. One lock is accused of one thing: a
reader who is told two stories about a lock believes neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contention_lab.diagnosis.finding import HEALTHY, IDLE_WAIT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contention_lab.diagnosis.finding import AccusedLock, Finding


def ranked(
    found: Sequence[Finding], *, together: Collection[tuple[str, str]] = ()
) -> tuple[Finding, ...]:
    """Return what is to be said, the most severe first.

    Parameters
    ----------
    found
        Findings, the more specific before the more general.
    together
        Pairs of kinds, in that order, that are both said of one lock.

    Returns
    -------
    tuple of Finding
        Without those about a lock that another finding acquits, and without those about a lock of
        which something more specific has been found. Equally severe ones keep their order.
    """
    acquitted = {lock for finding in found for lock in finding.acquits}
    said: dict[AccusedLock, list[str]] = {}
    kept = []
    for finding in found:
        if finding.lock is not None:
            before = said.setdefault(finding.lock, [])
            if any((kind, finding.kind) not in together for kind in before):
                continue
            if finding.lock in acquitted and finding.lock not in finding.acquits:
                continue
            before.append(finding.kind)
        kept.append(finding)
    return tuple(sorted(kept, key=lambda finding: -finding.severity))


def verdict(findings: Sequence[Finding]) -> str:
    """Return the kind of the finding that limits the program most.

    A finding of severity 0 limits nothing; of these only `idle-wait` is a verdict, since the
    waiting it explains is what other tools show first.
    """
    kinds = [finding.kind for finding in findings if finding.severity > 0.0]
    if kinds:
        return kinds[0]
    return IDLE_WAIT if any(finding.kind == IDLE_WAIT for finding in findings) else HEALTHY
