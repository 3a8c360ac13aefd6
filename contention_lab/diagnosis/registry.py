"""All findings: to add one, write its file and name it here.

Of two that are true of one lock the earlier one stays (see `ranking.py`), so the more specific one
comes first; of two equally severe ones it is the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis import serialised_by_lock, spin_collapse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contention_lab.diagnosis.case_file import CaseFile
    from contention_lab.diagnosis.finding import Finding

FINDINGS: Final[tuple[Callable[[CaseFile], Iterator[Finding]], ...]] = (
    spin_collapse.find,
    serialised_by_lock.find,
)
"""Each yields what it finds true of a trace."""

TOGETHER: Final = frozenset({(spin_collapse.KIND, serialised_by_lock.KIND)})
"""Kinds, in the order above, that are both said of one lock: each has its own remedy."""
