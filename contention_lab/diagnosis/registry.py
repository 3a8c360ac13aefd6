"""All findings about locks: to add one, write its file and name it here.

The more specific one comes first; of two equally severe ones it is the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis import serialised_by_lock, spin_collapse

if TYPE_CHECKING:
    from collections.abc import Callable

    from contention_lab.diagnosis.finding import Finding
    from contention_lab.diagnosis.lock_case import LockCase

LOCK_FINDINGS: Final[tuple[Callable[[LockCase], Finding | None], ...]] = (
    spin_collapse.find,
    serialised_by_lock.find,
)
