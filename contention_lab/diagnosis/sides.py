"""The sides of a buffer that wait in one function, told apart by who calls it.

A program may put its waiting into one function, for those who give as for those who take: then its
waits are one case of coordination, in which threads wait for one another. By the callers they are
two, and nobody waits for his own side.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.coordination import Purpose
from contention_lab.analysis.sites import is_user_code
from contention_lab.diagnosis.thresholds import NEARLY_ALL_WAITING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from contention_lab.analysis.coordination import CoordinationCase
    from contention_lab.trace import Frame, Trace


def sides(trace: Trace, case: CoordinationCase) -> tuple[CoordinationCase, ...]:
    """Return the sides of a case, or the case itself where callers do not tell them apart.

    They do if nearly all waiting of each side is ended by others than those who wait there.
    """
    if case.purpose is not Purpose.CONDITION or not _is_for_own_side(case):
        return (case,)
    stacks, which = np.unique(case.stack, return_inverse=True)
    callers = [_caller(trace.stack(stack)) for stack in stacks.tolist()]
    if len(set(callers)) != 2:  # one caller has no sides, and of three it is not known who is whose
        return (case,)
    first = np.array([caller == callers[0] for caller in callers], dtype=np.bool_)[which]
    parts = (_where(case, first), _where(case, ~first))
    return (case,) if any(map(_is_for_own_side, parts)) else parts


def _is_for_own_side(case: CoordinationCase) -> bool:
    return case.self_ended_share >= 1.0 - NEARLY_ALL_WAITING


def _caller(stack: Sequence[Frame]) -> tuple[str, str] | None:
    """Return the function of the program that calls the one which waits."""
    users = [(frame.filename, frame.function) for frame in stack if is_user_code(frame.filename)]
    return next((function for function in users if function != users[0]), None)


def _where(case: CoordinationCase, chosen: npt.NDArray[np.bool_]) -> CoordinationCase:
    columns: dict[str, Any] = {
        field.name: values[chosen]
        for field in fields(case)
        if isinstance(values := getattr(case, field.name), np.ndarray)
    }
    return replace(case, **columns)
