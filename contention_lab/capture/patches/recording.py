"""Which recording is going on: what was noted during another one does not count.

Times and parties mean something in one recording only. Patches keep who holds what in Python
objects, which live on after it.
"""

import os

number = 0
"""Grows with every recording of this process, and in every forked child."""


def begin() -> None:
    """Note that another recording begins."""
    global number
    number += 1


os.register_at_fork(after_in_child=begin)
