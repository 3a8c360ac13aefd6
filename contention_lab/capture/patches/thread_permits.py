"""Permits that threads take, and threads that wait for them.

A wait for a permit that somebody has is contention. A semaphore of which nobody has one is used as
a signal: waiting for it is coordination, and whoever releases it is the one who woke.
"""

from _thread import get_ident

from contention_lab.capture.patches.permits import Permits
from contention_lab.native import _core

TYPE_CHECKING = False


class ThreadPermits(Permits):
    """The permits of one semaphore of threads; `waits` has a token and a kind by thread."""

    __slots__ = ()
    may_be_signal = True

    def wait(self) -> None:
        """Note that this thread is about to wait, unless it already does."""
        ident = get_ident()
        if ident in self.waits:
            return
        contention = bool(self.held) or not self.may_be_signal
        if contention:
            self.blocked_ns = _core.now()
            held = self.others(_core.current_party())
            party, site = (0, 0) if held is None else (held.party, held.site)
            token = _core.wait_permit(self.source, party, site, len(self.waits))
        else:
            token = _core.wait_begin(self.source)
        self.waits[ident] = token, contention

    def end(self, outcome: int) -> None:
        """Note how this thread's attempt ended, whether it waited or not."""
        token, contention = 0, False
        if self.waits:
            token, contention = self.waits.pop(get_ident(), (0, False))
            if token:
                _core.wait_end(self.source, token, outcome)
        if outcome == _core.ACQUIRED:
            self.take(None, not contention)
        elif outcome == _core.TIMED_OUT and not token:
            self.try_failed()

    def release(self, end_ns: int) -> None:
        """Note that this thread gave a permit back at `end_ns`."""
        self.give(_core.current_party(), end_ns)

    def wake(self) -> None:
        """Note that this thread is about to give somebody a permit."""
        if self.waits and not self.held:
            _core.wake(self.source)
