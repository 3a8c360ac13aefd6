"""Replacing attributes so that they can be put back.

It only replaces and restores; what to replace is decided in `patches/`. Whoever replaced the same
attribute after us keeps his replacement: we put back only what is still ours.
"""

from __future__ import annotations

_MISSING = object()


class Undo:
    """A list of replaced attributes, restored in reverse order."""

    def __init__(self) -> None:
        self._done: list[tuple[object, str, object, object]] = []

    def set(self, owner: object, name: str, value: object) -> None:
        """Replace `owner.name`; an attribute that was inherited or absent is removed again later."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._done.append((owner, name, before, vars(owner).get(name, value)))

    def restore(self) -> None:
        """Put everything back that is still as we left it."""
        while self._done:
            owner, name, before, ours = self._done.pop()
            if vars(owner).get(name, _MISSING) is not ours:
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
