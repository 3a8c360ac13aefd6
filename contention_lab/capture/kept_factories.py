"""Who keeps `threading.Lock` itself, not a lock made by it, where no recording replaces it.

Names in modules are replaced; a class attribute, a default argument, a dataclass field or a closure
that was made before the recording goes on making locks that it does not see. They are counted, not
changed.
"""

import _thread
import gc

from contention_lab.capture.patches.names import module_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from contention_lab.capture.existing import Note

_LOCK = type(_thread.allocate_lock())
_MAKERS: "dict[int, str]" = {
    id(_thread.allocate_lock): "threading.Lock",
    id(_LOCK): "threading.Lock",
    id(_thread.RLock): "threading.RLock",
}
_FUNCTION = type(lambda: None)
_CELL = type((lambda kept: lambda: kept)(None).__closure__[0])  # type: ignore[index]
_FIELDS = {
    ("dataclasses", "Field"): ("default_factory", "a dataclass field"),
    ("functools", "partial"): ("func", "a functools.partial"),
    ("collections", "defaultdict"): ("default_factory", "a defaultdict"),
}


def kept_factories() -> "list[Note]":
    """Count the places that go on making locks which are not seen, as the metadata lists it."""
    makers = [_thread.allocate_lock, _LOCK, _thread.RLock]
    modules = {id(variables) for _name, variables in module_variables()}
    counts: dict[tuple[str, str], int] = {}
    containers = []
    for referrer in gc.get_referrers(*makers):
        if referrer is makers or id(referrer) in modules:
            continue
        if type(referrer) in (dict, tuple):
            containers.append(referrer)
        for found in _kept_by(referrer):
            counts[found] = counts.get(found, 0) + 1
    for owner in gc.get_referrers(*containers) if containers else ():
        for found in _kept_in_containers_of(owner):
            counts[found] = counts.get(found, 0) + 1
    return [
        {
            "what": f"{what} kept as {where}",
            "why": "kept before the recording began",
            "count": count,
        }
        for (what, where), count in counts.items()
    ]


def _kept_by(referrer: "Any") -> "Iterator[tuple[str, str]]":
    if type(referrer) is _CELL:
        if id(referrer.cell_contents) in _MAKERS:
            yield _MAKERS[id(referrer.cell_contents)], "a closure's variable"
        return
    if type(referrer) is staticmethod and id(referrer.__func__) in _MAKERS:
        yield _MAKERS[id(referrer.__func__)], "a class attribute"
        return
    cls = type(referrer)
    attribute, where = _FIELDS.get((cls.__module__, cls.__qualname__), ("", ""))
    if attribute and id(getattr(referrer, attribute, None)) in _MAKERS:
        yield _MAKERS[id(getattr(referrer, attribute))], where


def _kept_in_containers_of(owner: "Any") -> "Iterator[tuple[str, str]]":
    """Look at the attributes of a class and at the default arguments of a function."""
    if isinstance(owner, type):
        for value in [*owner.__dict__.values()]:
            if id(value) in _MAKERS:
                yield _MAKERS[id(value)], "a class attribute"
    elif type(owner) is _FUNCTION:
        for value in owner.__defaults__ or ():
            if id(value) in _MAKERS:
                yield _MAKERS[id(value)], "a default argument"
