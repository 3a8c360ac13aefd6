"""Finding `import-lock`: threads wait for a module that another one imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.finding import Finding, Remedy
from contention_lab.diagnosis.thresholds import (
    LARGEST_SEVERITY,
    LEAST_WAIT_S,
    LEAST_WAIT_SHARE,
)
from contention_lab.diagnosis.wording import duration, names, percent, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.lock_case import LockCase

KIND: Final = "import-lock"


def find(file: CaseFile) -> Iterator[Finding]:
    """Yield the finding for each module it is true of.

    It is true if threads wait for another one's import of the module for a tenth of the run or
    more, in wall time with at least one of them waiting. A module is imported once: how much of
    each thread's time that is says little.

    Severity is that share of the run. The culprit is what the import executes.
    """
    return (found for case in file.cases if (found := _of(file, case)) is not None)


def _of(file: CaseFile, case: LockCase) -> Finding | None:
    wall_s = file.program.wall_s
    if case.lock.type != "import lock" or not wall_s or case.waited_s < LEAST_WAIT_S:
        return None
    share = case.waited_s / wall_s
    if share < LEAST_WAIT_SHARE:
        return None
    severity = min(share, LARGEST_SEVERITY)
    where = f" ({place(case.culprits[0].site)})" if case.culprits else ""
    threads = int(case.total("contended"))
    return Finding(
        kind=KIND,
        severity=severity,
        summary=(
            f"{threads} thread{'s wait' if threads > 1 else ' waits'} in "
            f"{names(case.victims, most=2)} until another one has imported `{case.lock.name}`"
            f"{where}, {duration(case.waited_s)}: import it before the threads start, or let it do "
            f"less while it is imported."
        ),
        lock=case.lock,
        victims=case.victims,
        culprits=case.culprits,
        evidence=case.evidence() | {"waited_share": share, "module_wait_s": case.waited_s},
        remedies=(
            Remedy(
                "import-early",
                f"Import `{case.lock.name}` at the start, before there are threads.",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
            Remedy(
                "lazy",
                f"Move what `{case.lock.name}` computes or reads into a function that is called on "
                f"first use ({percent(share)} of the run).",
                None,
                1.0,
                1.0 / (1.0 - severity),
            ),
        ),
    )
