"""A channel: one server thread does what was done under the lock, callers wait for its reply."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contention_lab.simulate.batch.batch import LockKind
from contention_lab.simulate.program import call
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError, nothing_more
from contention_lab.simulate.remedies.request import requested

if TYPE_CHECKING:
    from contention_lab.simulate.batch.batch import Batch
    from contention_lab.simulate.batch.target import Target
    from contention_lab.simulate.remedies.remedy import Change

FORM: Final = "channel"


def read(text: str, target: Target) -> Change:
    """Return the change."""
    nothing_more(text, FORM)
    if not _applies(target):
        raise RemedyError(
            f"{FORM}: under `{target.label}` other locks are taken, or it sleeps: a server that "
            "does that is not simulated"
        )

    def change(batch: Batch) -> Batch:
        server = batch.next_id
        needs_gil = target.held.python > target.held.native
        step = call(server, 0.0)
        requesting = batch.with_all(
            lambda one: requested(
                one, target.ids, lambda _: step, moved=lambda ops: ops["ns"] > 0.0
            )
        )
        changed = requesting.with_kind((server,), LockKind("channel"), f"server of {target.label}")
        return replace(changed, servers=((server, needs_gil),))

    return change


def _applies(target: Target) -> bool:
    held = target.held
    return held.count > 0 and not held.is_nested and held.asleep < 0.05 * held.total


def suggest(target: Target) -> list[str]:
    """Return that it can be asked, where it can."""
    return [""] if _applies(target) else []


REMEDY: Final = Remedy(
    kind="channel",
    form=FORM,
    about="a server thread does the work, callers wait for its reply",
    warning="there is still one server: what is serial stays serial, and each request costs two "
    "wake-ups",
    lifts=False,
    read=read,
    suggest=suggest,
)
