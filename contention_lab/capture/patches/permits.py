"""Who has the permits of a semaphore: each permit is a hold of its own.

State belongs to the hold, not to the semaphore: a permit is given back by whoever took it if he has
one, and otherwise (a hand-off) it is the oldest that ends. It knows nothing of what a semaphore of
`threading`, `asyncio` or `multiprocessing` is made of; a lock is a semaphore with one permit.
"""

from contention_lab.capture.patches import recording
from contention_lab.capture.patches.beside import Beside
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from contention_lab.capture.patches.tasks import Task

CONTENTION = 0
COORDINATION = 1
_TRY_RECORD_NS = 1_000_000


class Permits(Beside):
    """The permits of one semaphore.

    Attributes
    ----------
    source
        Its entry in the trace.
    held
        The permits that are out, in the order they were taken.
    waits
        Who waits for one: what his wait began with.
    blocked_ns
        When somebody last began to wait: until then, all permits that were out made him wait.
    number
        The recording that the rest belongs to.
    """

    __slots__ = ("_last_try_ns", "blocked_ns", "held", "number", "source", "waits")

    def __init__(
        self, thing: object, type_name: str, name: str | None = None, *, late: bool = False
    ) -> None:
        super().__init__(thing)
        self.source = _core.Source(type_name, name, late)
        self.forget()

    def forget(self) -> None:
        """Begin anew in another recording: nobody is known to have a permit, or to wait for one."""
        self.number = recording.number
        self.held: list[_core.Permit] = []
        self.waits: dict[Any, Any] = {}
        self.blocked_ns = 0
        self._last_try_ns = 0

    def take(self, task: "Task | None", count: bool) -> None:
        """Note that a task, or this thread, has a permit from now on.

        Parameters
        ----------
        task
            None for the thread.
        count
            Whether that is an acquire which no wait has counted.
        """
        party, site = (0, 0) if task is None else (task.party, task.called_from[1])
        self.held.append(_core.take(self.source, party, site, task, bool(self.waits), count))

    def others(self, party: int) -> "_core.Permit | None":
        """Return the oldest permit that is not `party`'s."""
        for permit in self.held:
            if permit.party != party:
                return permit
        return None

    def since(self, party: int) -> int:
        """Return since when `party` has the permit that it took last; 0 if it has none."""
        for permit in reversed(self.held):
            if permit.party == party:
                return permit.start_ns
        return 0

    def give(self, party: int, end_ns: int) -> None:
        """Note that `party` gave a permit back at `end_ns`; one that nobody took is none."""
        held = self.held
        while held:
            permit, is_own = held[-1], True
            if permit.party != party:
                own = [other for other in held if other.party == party]
                permit, is_own = (own[-1], True) if own else (held[0], False)
            try:
                held.remove(permit)
            except ValueError:  # another thread was faster
                continue
            waiters = len(self.waits) or (permit.start_ns <= self.blocked_ns)
            _core.give(self.source, permit, end_ns, party, waiters, not is_own)
            return

    def try_failed(self) -> None:
        """Count an attempt of this thread that found nothing and did not wait.

        Of many, one a millisecond is recorded in detail.
        """
        now = _core.now()
        if now - self._last_try_ns < _TRY_RECORD_NS and self._last_try_ns:
            _core.count(self.source, 0, 1, 0)
            return
        self._last_try_ns = now
        held = self.others(_core.current_party())
        party, site = (0, 0) if held is None else (held.party, held.site)
        _core.emit_wait(
            self.source,
            0,
            now,
            now,
            _core.FAILED_TRY,
            CONTENTION,
            _core.capture_stack(),
            party,
            site,
            _core.stack_of(party),
            len(self.waits),
        )
