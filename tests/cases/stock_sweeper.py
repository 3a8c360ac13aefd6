"""The rare holder of another module: it expires old entries of a shelf it is given."""

import time


def sweep(guard, entries, pause_s):
    """Drop old entries under the guard; each is confirmed by a warehouse far away."""
    with guard:
        for name in sorted(entries)[:4]:
            time.sleep(pause_s)  # the warehouse answers
            entries.pop(name, None)


def sweep_outside(guard, entries, pause_s):
    """Ask the warehouse first, then drop under the guard."""
    with guard:
        old = sorted(entries)[:4]
    time.sleep(pause_s * len(old))
    with guard:
        for name in old:
            entries.pop(name, None)
