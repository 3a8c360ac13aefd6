"""Remedies, one to a file. A new one is a file here and a line in `REMEDIES`."""

from __future__ import annotations

from typing import Final

from contention_lab.simulate.remedies import (
    async_backend,
    channel,
    faster,
    lock,
    merge_calls,
    move_out,
    narrow,
    permits,
    remove,
    shard,
)
from contention_lab.simulate.remedies.remedy import Remedy, RemedyError

REMEDIES: Final[dict[str, Remedy]] = {
    module.REMEDY.kind: module.REMEDY
    for module in (
        narrow,
        move_out,
        shard,
        permits,
        async_backend,
        faster,
        remove,
        lock,
        merge_calls,
        channel,
    )
}
"""Remedies by kind."""

__all__ = ["REMEDIES", "Remedy", "RemedyError"]
