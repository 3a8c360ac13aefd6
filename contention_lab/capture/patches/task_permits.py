"""Permits that asyncio tasks take, and tasks that wait for them."""

from contention_lab.capture.patches import tasks
from contention_lab.capture.patches.permits import Permits
from contention_lab.capture.patches.task_wait import Wait
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contention_lab.capture.patches.tasks import Task


class TaskPermits(Permits):
    """The permits of one lock or semaphore of tasks; `waits` has a `Wait` by its id.

    Attributes
    ----------
    may_be_signal
        It may be used as a signal: waiting while nobody has a permit is coordination.
    waker
        Party and stack of who last released it.
    """

    __slots__ = ("may_be_signal", "waker")

    def __init__(self, thing: object, type_name: str, *, late: bool, may_be_signal: bool) -> None:
        super().__init__(thing, type_name, late=late)
        self.may_be_signal = may_be_signal

    def forget(self) -> None:
        """Begin anew in another recording."""
        super().forget()
        self.waker = 0, 0

    def begin(self, task: "Task | None") -> Wait:
        """Note that the task that runs begins to wait."""
        if self.may_be_signal and not self.held:
            wait = Wait(self.source, task, len(self.waits))
        else:
            self.blocked_ns = _core.now()
            held = self.others(task.party if task else 0)
            wait = Wait(self.source, task, len(self.waits), held, is_coordination=False)
        self.waits[id(wait)] = wait
        return wait

    def failed(self, wait: Wait, error: BaseException) -> None:
        """Note that the wait ended with an exception."""
        self.waits.pop(id(wait), None)
        wait.failed(error)

    def taken(self, task: "Task | None", wait: Wait) -> None:
        """Note that the task that runs has a permit after a wait."""
        self.waits.pop(id(wait), None)
        wait.record(_core.ACQUIRED, self.waker)
        self.take(task, count=wait.is_coordination)

    def note_waker(self) -> None:
        """Note that the task that runs is about to give somebody a permit that nobody had."""
        self.waker = tasks.current_party(), _core.capture_stack()
