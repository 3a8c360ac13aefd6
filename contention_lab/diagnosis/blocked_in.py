"""What holders of a lock are blocked in, in words, and what to do about it.

It judges nothing: whether being blocked is what is wrong, the findings decide.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contention_lab.analysis.sites import user_frame
from contention_lab.analysis.sums import summed
from contention_lab.diagnosis.finding import Remedy
from contention_lab.diagnosis.thresholds import MOSTLY
from contention_lab.diagnosis.wording import name, names
from contention_lab.trace import Call
from contention_lab.trace.layer_schema import BlockingFlag, WorldCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.analysis.holding import HeldTime
    from contention_lab.diagnosis.finding import Party
    from contention_lab.diagnosis.lock_case import LockCase
    from contention_lab.trace import Frame, Trace

CALLS: Final = {
    Call.OTHER: "a system call",
    Call.SLEEP: "a sleep",
    Call.NATIVE_SLEEP: "a sleep of native code",
    Call.READ: "reading",
    Call.WRITE: "writing",
    Call.SOCKET: "network traffic",
    Call.POLL: "waiting for input",
    Call.PROCESS: "waiting for another process",
    Call.FILE_LOCK: "waiting for a file lock",
}
"""What a holder was seen blocked in."""


def calls_s(held: HeldTime) -> dict[str, float | int | None]:
    """Return the time in each kind of call, as evidence: as often as threads waited in it.

    It is waiting time: with several waiters more than the lock was held.
    """
    return {
        f"waited_while_holder_in_{call.name.lower()}_s": seconds
        for call, seconds in held.calls.items()
    }


WORLD_CALLS: Final = {
    WorldCall.FSYNC: "writing to the disk (`fsync`)",
    WorldCall.FLOCK: "waiting for a file lock",
    WorldCall.FCNTL_LOCK: "waiting for a file lock",
    WorldCall.GETADDRINFO: "looking up a host name",
    WorldCall.CONNECT: "connecting",
    WorldCall.OPEN: "opening a file",
}
"""Recorded calls that say more than their kind."""


def at_calls(trace: Trace, case: LockCase) -> LockCase:
    """Return a case with its culprits where they are blocked, as far as such calls are recorded.

    A holder that also computes under the lock may have been seen at that, when others came to wait.
    """
    calls = trace.blocking
    mine = np.isin(calls["lock"], [row.lock.id for row in case.rows]) & (calls["stack"] != 0)
    mine &= calls["flags"] & int(BlockingFlag.STACK_LATER | BlockingFlag.OPEN) == 0
    chosen = calls[mine]
    blocked = summed(chosen["stack"], (chosen["end_ns"] - chosen["start_ns"]).astype(np.int64))
    stacks = {trace.stack(stack): ns for stack, ns in blocked.items()}
    return replace(case, culprits=tuple(_at_calls(party, stacks) for party in case.culprits))


def _at_calls(party: Party, stacks: Mapping[tuple[Frame, ...], float]) -> Party:
    code = _function(party.code)
    mine = {
        stack: ns for stack, ns in stacks.items() if code in [_function(frame) for frame in stack]
    }
    functions: dict[object, float] = defaultdict(float)
    lines: dict[Frame | None, float] = defaultdict(float)
    for stack, ns in mine.items():
        frame = user_frame(stack)
        functions[_function(frame)] += ns
        lines[frame] += ns
    if lines.get(party.site, 0.0) >= MOSTLY * sum(lines.values()):
        return party
    most = max(functions, key=lambda function: functions[function])
    heaviest = max(
        (stack for stack in mine if _function(user_frame(stack)) == most),
        key=lambda stack: mine[stack],
    )
    return replace(party, site=user_frame(heaviest), stack=heaviest)


def across(case: LockCase) -> str:
    """Return what a lock is held across: a function, or a kind of call."""
    call, world = most_of(case), case.held.world
    kind = CALLS[call] if call is not None else "input or output"
    kind = WORLD_CALLS.get(max(world, key=lambda one: world[one]), kind) if world else kind
    culprit = case.culprits[0]
    if culprit.site is None or culprit.code is None or _same_function(culprit):
        return kind
    return f"`{name(culprit.site)}` ({kind})"


def most_of(case: LockCase) -> Call | None:
    """Return the kind of call that holders are blocked in for most of the time, if it is known."""
    calls = case.held.calls
    return max(calls, key=lambda call: calls[call]) if calls else None


def move_out(case: LockCase, gain: float) -> Remedy:
    """Return the remedy to be blocked without the lock, with the most that it can gain."""
    lock = f"`{case.lock.name}`"
    if most_of(case) in (Call.SLEEP, Call.NATIVE_SLEEP):
        where = names(case.culprits, most=1)
        text = (
            f"Let {where} sleep before it takes {lock} or after it has given it back, unless the "
            "sleep is there to set a pace."
        )
    else:
        text = (
            f"Take {across(case)} out of {lock}: do it before or after, and hold the lock only to "
            "store the result."
        )
    return Remedy("move-io-out", text, None, 1.0, gain)


def _same_function(culprit: Party) -> bool:
    return _function(culprit.site) == _function(culprit.code)


def _function(frame: Frame | None) -> tuple[str, str] | None:
    return None if frame is None else (frame.filename, frame.function)
