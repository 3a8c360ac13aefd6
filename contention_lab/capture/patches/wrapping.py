"""Putting a function before a method of the program's, so that it looks like the method itself.

What `functools.wraps` does, without importing it, and in addition the code object gets the method's
name: tracebacks and recorded stacks show the names one expects.

Every original has one wrapper for the life of the process: recordings can follow each other without
leaving anything behind, and installing twice changes nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from contention_lab.capture.undo import Undo

    Function = Callable[..., Any]
    Make = Callable[[Function], Function]

_ASSIGNED = ("__module__", "__name__", "__qualname__", "__doc__", "__type_params__")
_wrappers: "dict[tuple[int, Make], Function]" = {}
_made: "dict[int, tuple[Make, Function]]" = {}
"""By the id of a wrapper: what made it, and of what."""


def wrap(undo: "Undo", owner: object, name: str, make: "Make") -> None:
    """Replace the method `name` of `owner`, if it has one, by `make` of it, once."""
    original = function = vars(owner).get(name)
    while id(function) in _made:
        made_by, function = _made[id(function)]
        if made_by is make:
            return
    if original is not None:
        undo.set(owner, name, wrapper_of(original, make))


def wrapper_of(original: "Function", make: "Make") -> "Function":
    """Return what stands before `original`; made when first asked for."""
    wrapper = _wrappers.get((id(original), make))
    if wrapper is None:
        wrapper = dressed(make(original), original)
        _wrappers[id(original), make] = wrapper
        _made[id(wrapper)] = make, original
    return wrapper


def dressed(wrapper: "Function", original: "Function") -> "Function":
    """Make `wrapper` look like `original`; return it."""
    wrapper.__annotations__ = getattr(original, "__annotations__", {})
    for name in _ASSIGNED:
        try:
            setattr(wrapper, name, getattr(original, name))
        except AttributeError:
            continue
    vars(wrapper).update(getattr(original, "__dict__", {}))
    wrapper.__wrapped__ = original  # type: ignore[attr-defined]
    wrapper.__code__ = wrapper.__code__.replace(
        co_name=wrapper.__name__, co_qualname=wrapper.__qualname__
    )
    return wrapper
