"""Permits that threads take, and threads that wait for them.

A wait for a permit that somebody has is contention. A semaphore of which nobody has one is used as
a signal: waiting for it is coordination, and whoever releases it is the one who woke.
"""

from _thread import get_ident

from contention_lab.capture.patches.permits import CONTENTION, Permits
from contention_lab.native import _core

TYPE_CHECKING = False

_TRY_RECORD_NS = 1_000_000


class ThreadPermits(Permits):
    """The permits of one semaphore of threads; `waits` has a token and a kind by thread."""

    __slots__ = ("_last_try_ns",)

    def forget(self) -> None:
        """Begin anew in another recording: nobody is known to have a permit, or to wait for one."""
        super().forget()
        self.waits = {}
        self._last_try_ns = 0

    def wait(self) -> None:
        """Note that this thread is about to wait, unless it already does."""
        if not _core.active():
            return
        if self.is_stale:
            self.forget()
        ident = get_ident()
        if ident in self.waits:
            return
        contention = self.held > 0 or not self.may_be_signal
        if contention:
            self.blocked_ns = _core.now()
            token = _core.wait_permit(self.source, *self.others(), len(self.waits))
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
            self.take(not contention)
        elif outcome == _core.TIMED_OUT and not token:
            self._try_failed()

    def wake(self) -> None:
        """Note that this thread is about to give somebody a permit."""
        if self.waits and not self.held:
            _core.wake(self.source)

    def _try_failed(self) -> None:
        """Count an attempt of this thread that found nothing and did not wait.

        Of many, one a millisecond is recorded in detail.
        """
        now = _core.now()
        if now - self._last_try_ns < _TRY_RECORD_NS and self._last_try_ns:
            _core.count(self.source, 0, 1, 0)
            return
        self._last_try_ns = now
        party, site = self.others()
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
