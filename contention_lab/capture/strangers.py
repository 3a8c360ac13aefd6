"""Locks that are not recorded: of libraries with locks of their own, and what has no source.

They are named only if the program has used them: silence about a lock must not read as its
acquittal.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from contention_lab.capture.existing import Note

LOCKS_OF_THEIR_OWN: "Final" = {
    "trio": "locks, semaphores, conditions and channels of trio",
    "anyio": "locks, semaphores, conditions and channels of anyio",
    "curio": "locks, semaphores and queues of curio",
    "gevent.lock": "locks and queues of gevent's own",
    "eventlet.semaphore": "semaphores and queues of eventlet's own",
    "aiologic": "locks and queues of aiologic",
}
"""Module by what is not recorded of it."""


def strangers() -> "list[Note]":
    """Return what the metadata says of the libraries that the program has loaded."""
    own: list[Note] = [
        {"what": what, "why": "made of nothing that can be recorded", "count": 1}
        for module, what in LOCKS_OF_THEIR_OWN.items()
        if module in sys.modules
    ]
    probes = sys.modules.get("contention_lab.capture.patches.probes")
    refused = () if probes is None else sorted(probes.refused)
    replaced: list[Note] = [
        {"what": what, "why": "replaced, or its source is not there", "count": 1}
        for what in refused
    ]
    return own + replaced
