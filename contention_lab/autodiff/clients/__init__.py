"""The seven ways to share the autodiff server; this is the one place where one is chosen.

A new client is a file beside this one and a line in `CLIENTS`.
"""

from collections.abc import Callable

from contention_lab.autodiff.clients.async_backend import AsyncBackend
from contention_lab.autodiff.clients.channel import Channel
from contention_lab.autodiff.clients.client import Client, LockChoice, unknown
from contention_lab.autodiff.clients.global_mutex import GlobalMutex
from contention_lab.autodiff.clients.global_spinlock import GlobalSpinlock
from contention_lab.autodiff.clients.graph_mutex import GraphMutex
from contention_lab.autodiff.clients.narrow_lock import NarrowLock
from contention_lab.autodiff.clients.thread_local import ThreadLocal

CLIENTS: dict[str, Callable[[LockChoice | None], Client]] = {
    "global-spinlock": GlobalSpinlock,
    "global-mutex": GlobalMutex,
    "narrow-lock": NarrowLock,
    "channel": Channel,
    "graph-mutex": GraphMutex,
    "thread-local": ThreadLocal,
    "async-backend": AsyncBackend,
}


def connect(name: str, lock: LockChoice | None = None) -> Client:
    """Return a new client, with a server (or servers) of its own.

    Parameters
    ----------
    name : str
        A key of `CLIENTS`; ValueError for any other.
    lock : str or callable, optional
        The kind of lock that guards the server: a name in `contention_lab.locks.KINDS`, or a
        function that makes a lock from its name. ValueError if the client has none to choose.
    """
    if name not in CLIENTS:
        raise ValueError(unknown("client", name, CLIENTS))
    return CLIENTS[name](lock)
