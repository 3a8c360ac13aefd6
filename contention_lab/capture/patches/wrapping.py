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

_ASSIGNED = ("__module__", "__name__", "__qualname__", "__doc__", "__type_params__")
_wrappers: "dict[int, tuple[Function, Function]]" = {}
_ours: "set[int]" = set()


def wrap(undo: "Undo", owner: object, name: str, make: "Callable[[Function], Function]") -> None:
    """Replace the method `name` of `owner`, if it has one, by `make` of it."""
    original = vars(owner).get(name)
    if original is None or id(original) in _ours:
        return
    undo.set(owner, name, wrapper_of(original, make))


def wrapper_of(original: "Function", make: "Callable[[Function], Function]") -> "Function":
    """Return what stands before `original`; made when first asked for."""
    known = _wrappers.get(id(original))
    if known is None:
        known = original, dressed(make(original), original)
        _wrappers[id(original)] = known
        _ours.add(id(known[1]))
    return known[1]


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
