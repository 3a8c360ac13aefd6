"""One wait of a task, from its beginning to its end."""

from contention_lab.capture.patches import recording
from contention_lab.capture.patches.permits import CONTENTION, COORDINATION
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contention_lab.capture.patches.tasks import Task


class Wait:
    """What a wait began with.

    Attributes
    ----------
    source
        The entry in the trace of what is waited for.
    is_coordination
        It is for a signal, and not for something that somebody has; then it may be known what
        the task `awaited` that would have to give it, and whether this is `again` the same wait.
    """

    __slots__ = (
        *("_awaited", "_end_ns", "_flags", "_holder", "_holder_site", "_holder_stack", "_number"),
        *("_stack", "_start_ns", "_task", "_waiters", "is_coordination", "source"),
    )

    def __init__(
        self,
        source: "_core.Source",
        task: "Task | None",
        waiters: int,
        permit: "_core.Permit | None" = None,
        *,
        is_coordination: bool = True,
        awaited: int = 0,
        again: bool = False,
    ) -> None:
        self.source = source
        self.is_coordination = is_coordination
        self._start_ns = _core.now()
        self._end_ns = 0
        self._number = recording.number
        self._task = task
        self._waiters = waiters
        self._awaited = awaited
        self._flags = _core.AGAIN if again else 0
        self._stack = (task and task.called_from[0]) or _core.capture_stack()
        self._holder = self._holder_site = self._holder_stack = 0
        if task is not None:
            task.is_late = False
        if permit is not None:
            self._holder, self._holder_site = permit.party, permit.site
            if permit.task is not None:
                self._holder_stack = permit.task.stack()

    def stop(self, source: "_core.Source") -> None:
        """Note that it is over, if it is for `source`; what follows is no longer part of it."""
        if source is self.source and not self._end_ns:
            self._end_ns = _core.now()

    def failed(self, error: BaseException) -> None:
        """Record that an exception ended it."""
        self.record(_core.INTERRUPTED if self._task is None else self._task.outcome(error))

    def record(self, outcome: int, waker: "tuple[int, int]" = (0, 0)) -> None:
        """Record it; `waker` is party and stack of who woke the task, if it was coordination."""
        if self._number != recording.number:
            return
        if self.is_coordination and outcome == _core.ACQUIRED:
            self._holder, self._holder_stack = waker
        _core.emit_wait(
            self.source,
            0 if self._task is None else self._task.party,
            self._start_ns,
            self._end_ns or _core.now(),
            outcome,
            COORDINATION if self.is_coordination else CONTENTION,
            self._stack,
            self._holder,
            self._holder_site,
            self._holder_stack,
            self._waiters,
            self._flags,
            self._awaited,
        )
