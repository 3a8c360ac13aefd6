"""The client: the only thing that knows how the autodiff server is shared between threads.

Here is its interface, and the choice of the lock it is built with. A client never looks into a
step; changing the client changes no bit of any gradient.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from contention_lab import locks
from contention_lab.autodiff.backend import Backend
from contention_lab.autodiff.clients.sharing import Sharing
from contention_lab.autodiff.graph import Node, Step
from contention_lab.autodiff.server import Server
from contention_lab.autodiff.tape import Gradients

LockFactory: TypeAlias = Callable[[str], locks.Lock]
"""Makes a lock with the given name."""

LockChoice: TypeAlias = str | LockFactory
"""A name in `contention_lab.locks.KINDS`, or a factory."""


class Client(ABC):
    """How threads share the autodiff server. Use it in a `with` statement, or close it.

    Attributes
    ----------
    usual_lock : str or None
        The kind of lock it has if no other is chosen; None if it has none.
    sharing : Sharing
        Which work is done under which lock.
    nested_backward : bool
        Whether a step may register steps and run a backward pass; if not, trying is a `GraphError`.
    backend : Backend
        Where operations compute.
    """

    usual_lock: str | None = "mutex"
    sharing = Sharing()
    nested_backward: bool

    def __init__(self, lock: LockChoice | None = None) -> None:
        if lock and self.usual_lock is None:
            raise ValueError(f"client {type(self).__name__} has no lock to choose; leave it out")
        choice = lock or self.usual_lock or "mutex"
        if isinstance(choice, str) and choice not in locks.KINDS:
            raise ValueError(unknown("lock", choice, locks.KINDS))
        self._make: LockFactory = locks.KINDS[choice] if isinstance(choice, str) else choice
        self.backend = Backend()

    @abstractmethod
    def register(self, node: Node, step: Step, parents: Sequence[Node]) -> None:
        """Register a new node and its step.

        `parents` are alive until this returns, and so are not cleaned up; a client that returns
        before the server has heard of the node must itself keep them alive for so long.
        """

    @abstractmethod
    def backward(self, root: Node, gradients: Gradients) -> Gradients:
        """Run the backward pass from `root`, complete `gradients` and return them."""

    @abstractmethod
    def servers(self) -> Sequence[Server]:
        """Return the servers that the caller can reach, to see how much they remember."""

    def close(self) -> None:
        """End what runs in the background. The client is of no more use."""
        self.backend.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return the line that says so, with the nearest of the known names, or all of them."""
    near = difflib.get_close_matches(name, known := list(known), 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known)
    return f"{what} {name!r} is unknown; {hint}"
