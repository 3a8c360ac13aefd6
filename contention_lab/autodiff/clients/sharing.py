"""What a client declares about itself: which work is done under which lock.

It is what the prediction of a client knows of it, before anybody has run it. Plain data: no time
is in it, and nothing that was measured.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Sharing:
    """How threads share the autodiff server.

    Attributes
    ----------
    covers : {"calls", "tables", "nothing"}
        What a lock is held around: `register` and the whole of `backward`; the same, but not while
        steps run; or nothing.
    apart : {"nobody", "graphs", "threads"}
        Who has a server, and its lock, to themselves. Graphs are found through a locator, whose
        lock everybody takes at each call.
    has_thread : bool
        The server has a thread of its own: registering is a message to it, and a backward pass is
        a request whose reply is waited for.
    queues : bool
        Kernels are handed to streams, one for each core; a client thread keeps to one of them.
    """

    covers: Literal["calls", "tables", "nothing"] = "calls"
    apart: Literal["nobody", "graphs", "threads"] = "nobody"
    has_thread: bool = False
    queues: bool = False
