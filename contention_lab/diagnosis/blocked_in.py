"""What holders of a lock are blocked in, in words, and what to do about it.

It judges nothing: whether being blocked is what is wrong, the findings decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contention_lab.diagnosis.finding import Remedy
from contention_lab.diagnosis.wording import name, names
from contention_lab.trace import Call
from contention_lab.trace.layer_schema import WorldCall

if TYPE_CHECKING:
    from contention_lab.analysis.holding import HeldTime
    from contention_lab.diagnosis.finding import Party
    from contention_lab.diagnosis.lock_case import LockCase

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
    here, there = culprit.site, culprit.code
    if here is None or there is None:
        return here is there
    return (here.filename, here.function) == (there.filename, there.function)
