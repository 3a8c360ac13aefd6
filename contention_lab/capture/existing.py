"""Locks that exist when a recording starts.

Those that the standard library's modules keep are exchanged for ours in any case, all others on
request. What cannot be exchanged safely is counted, with the reason. "Safely" is the core's
judgement: the lock is free, and every reference to it is in a place that can be changed (see
`references.py`).
"""

import _thread
import gc
import sys

from contention_lab.capture.metadata import gil_enabled
from contention_lab.capture.patches.names import module_variables
from contention_lab.capture.references import IN_DICT, Referred, find_places, instance_dict
from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from contention_lab.capture.references import Place

    Note = dict[str, str | int]

_LOCK = type(_thread.allocate_lock())
_RLOCK = _thread.RLock
_STAND_INS: "dict[type, type]" = {_LOCK: _core.PlainLock, _RLOCK: _core.PlainRLock}
_NAMES: "dict[type, str]" = {_LOCK: "threading.Lock", _RLOCK: "threading.RLock"}

_importlib = sys.modules.get("_frozen_importlib")
_NO_GIL = "there is no GIL, and other threads run"
_NOT_ASKED = "made before the recording, which replaces such locks only if it is told to (existing)"
_SLEEPERS = ("threading.Thread._tstate_lock", "threading._MainThread._tstate_lock")
"""Locks that only make threads sleep; nobody contends for them."""


def exchange_existing(everything: bool) -> "tuple[list[Referred], list[Note]]":
    """Put locks of ours in the place of those that exist.

    Parameters
    ----------
    everything
        Whether that means all locks, or those that the standard library's modules keep.

    Returns
    -------
    tuple
        What was exchanged, for `restore`; and what was not, as the trace's metadata lists it.
    """
    why_not = _Count()
    exchanged: list[Referred] = []
    if not gil_enabled() and len(sys._current_frames()) > 1:
        why_not.add_all(_all_locks(()), _NO_GIL)
        return exchanged, why_not.notes()
    try:
        hard = _exchange_library(exchanged)
        _exchange_anywhere(_all_locks(exchanged) if everything else hard, exchanged, why_not)
    except BaseException:
        restore(exchanged)
        raise
    if not everything:
        others = (lock for lock in _all_locks(exchanged) if id(lock) not in why_not.counted)
        why_not.add_all(others, _NOT_ASKED)
    return exchanged, why_not.notes()


def restore(exchanged: "list[Referred]") -> None:
    """Put the program's locks back where that is safe; where it is not, ours stay and work on."""
    ours = []
    while exchanged:
        pair = exchanged.pop()
        ours.append(Referred(pair.stand_in))
        ours[-1].stand_in = pair.target
        del pair
    if ours:
        find_places(ours)
    for pair in ours:
        _core.exchange(pair.target, pair.stand_in, pair.places, pair.methods)


def _exchange_library(exchanged: "list[Referred]") -> "list[object]":
    """Exchange what the standard library's modules keep; return what needs a closer look."""
    hard = []
    for container, key, name in _library_places():
        lock = Referred(container[key])
        lock.stand_in = _core.stand_in(_STAND_INS[type(lock.target)], name)
        places: list[Place] = [(IN_DICT, container, key, 0)]
        if _core.exchange(lock.target, lock.stand_in, places, []) is None:
            exchanged.append(lock)
        else:
            hard.append(lock.target)
    return hard


def _library_places() -> "Iterable[tuple[dict[str, Any], str, str]]":
    """Yield (dictionary, key, name) of locks in module variables, and in objects kept in those."""
    for module_name, fields in module_variables():
        if module_name.partition(".")[0] not in sys.stdlib_module_names:
            continue
        for key in [*fields]:
            cls = type(fields.get(key))
            if cls in _STAND_INS:
                yield fields, key, f"{module_name}.{key}"
            elif cls.__module__ == module_name and module_name != "threading":
                inner = instance_dict(fields.get(key)) or {}
                for attribute in [*inner]:
                    if type(inner.get(attribute)) in _STAND_INS:
                        yield inner, attribute, f"{module_name}.{cls.__qualname__}.{attribute}"
            if sys.version_info < (3, 12) and isinstance(fields.get(key), type):
                yield from _property_places(module_name, fields[key])
    yield from _handler_places()


def _property_places(module_name: str, cls: type) -> "Iterable[tuple[dict[str, Any], str, str]]":
    """Yield the locks of a class's cached properties, which have one each until Python 3.11."""
    if cls.__module__ != module_name:
        return
    for name, value in [*vars(cls).items()]:
        if type(value).__qualname__ == "cached_property":
            inner = instance_dict(value) or {}
            if type(inner.get("lock")) in _STAND_INS:
                yield inner, "lock", f"{module_name}.{cls.__qualname__}.{name}.lock"


def _handler_places() -> "Iterable[tuple[dict[str, Any], str, str]]":
    """Yield the locks of the program's logging handlers."""
    for reference in list(getattr(sys.modules.get("logging"), "_handlerList", [])):
        handler = reference()
        if type(getattr(handler, "lock", None)) in _STAND_INS:
            cls = type(handler)
            yield vars(handler), "lock", f"{cls.__module__}.{cls.__qualname__}.lock"


def _exchange_anywhere(
    locks: "list[object]", exchanged: "list[Referred]", why_not: "_Count"
) -> None:
    """Exchange locks wherever they are referred to from. Empties `locks`."""
    everywhere = []
    while locks:
        everywhere.append(Referred(locks.pop()))
    if everywhere:
        find_places(everywhere)
    for lock in everywhere:
        if lock.name in _SLEEPERS:
            continue
        lock.stand_in = _core.stand_in(_STAND_INS[type(lock.target)], lock.name)
        why = _core.exchange(lock.target, lock.stand_in, lock.places, lock.methods)
        if why is None:
            exchanged.append(lock)
        else:
            why_not.add(lock.target, why)


def _all_locks(exchanged: "Iterable[Referred]") -> "list[object]":
    """Return all locks but importlib's, and those exchanged, which only we still refer to."""
    left_out = {id(lock.target) for lock in exchanged}
    for reference in list(getattr(_importlib, "_module_locks", {}).values()):
        left_out.update(map(id, (instance_dict(reference()) or {}).values()))
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) in _STAND_INS and id(thing) not in left_out
    ]


class _Count:
    """How many locks were left alone, by type and reason."""

    def __init__(self) -> None:
        self.counted: set[int] = set()
        self._left: dict[tuple[str, str], int] = {}

    def add(self, lock: object, why: str) -> None:
        """Count one."""
        key = _NAMES[type(lock)], why
        self._left[key] = self._left.get(key, 0) + 1
        self.counted.add(id(lock))

    def add_all(self, locks: "Iterable[object]", why: str) -> None:
        """Count several with the same reason."""
        for lock in locks:
            self.add(lock, why)

    def notes(self) -> "list[Note]":
        """What and why, as the trace's metadata lists it."""
        return [
            {"what": what, "why": why, "count": count} for (what, why), count in self._left.items()
        ]
