"""`global-spinlock`: one server, one spinlock around register and the whole backward pass.

As shipped in Burn 0.16. What it costs: whoever waits keeps a core busy, and backward passes are
long. With more threads than cores a spinner takes the core from the very thread it waits for, so
the batch becomes slower with every thread added.
"""

from contention_lab.autodiff.clients.global_lock import GlobalLock


class GlobalSpinlock(GlobalLock):
    """The global lock, spinning unless another kind is chosen."""

    usual_lock = "spinlock"
