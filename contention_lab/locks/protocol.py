"""The interface every lock here has: that of `threading.Lock`.

It says what a lock can do, not how. Code that takes a lock as a parameter is typed with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from types import TracebackType


class Lock(Protocol):
    """A mutual exclusion lock."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; False if it could not be had at once, or within `timeout` seconds."""

    def release(self) -> None:
        """Give the lock back; RuntimeError if it is not held."""

    def locked(self) -> bool:
        """Whether some thread holds the lock."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
