"""`global-mutex`: one server, one parking mutex around register and the whole backward pass.

The obvious first try. What it costs: waiters sleep instead of spinning, so threads do no harm, but
backward passes still run one at a time; no number of cores makes the batch faster than their sum.
"""

from contention_lab.autodiff.clients.global_lock import GlobalLock


class GlobalMutex(GlobalLock):
    """The global lock, parking unless another kind is chosen."""

    usual_lock = "mutex"
