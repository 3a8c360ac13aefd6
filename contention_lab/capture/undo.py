"""Replacing attributes so that they can be put back.

It only replaces and restores; what to replace is decided in `patches/`. Whoever replaced the same
attribute after us keeps his replacement: we put back only what is still ours.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MISSING = object()


class Undo:
    """A list of replaced attributes, restored in reverse order."""

    def __init__(self) -> None:
        self._done: list[Callable[[], object] | tuple[object, str, object, object]] = []

    def set(self, owner: object, name: str, value: object) -> None:
        """Replace `owner.name`; one that was inherited or absent is removed again later."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._done.append((owner, name, before, vars(owner).get(name, value)))

    def call(self, function: "Callable[[], object]") -> None:
        """Have `function` called when its turn comes to be undone."""
        self._done.append(function)

    def restore(self) -> None:
        """Put everything back that is still as we left it."""
        while self._done:
            done = self._done.pop()
            if not isinstance(done, tuple):
                done()
                continue
            owner, name, before, ours = done
            if vars(owner).get(name, _MISSING) is not ours:
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
