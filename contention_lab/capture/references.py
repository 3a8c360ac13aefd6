"""Where an object is referred to from, as places that another can be put into.

A place is a tuple for the core's `exchange`: (kind, container, key, which), where `which` is 0 for
the object itself and n for its n-th kept bound method (a Condition keeps the methods of its lock).
Only places that can be changed without running the program's code are found; others show in the
reference count.
"""

import gc
import sys

from contention_lab.capture.patches.names import module_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Place = tuple[int, object, object, int]

IN_DICT, IN_LIST, IN_CELL, IN_CLASS, IN_SLOT = range(5)

_FRAME = type(sys._getframe())
_METHOD: "Any" = type(len)
_GETSET = type(_FRAME.__dict__["f_locals"])
_CELL = type((lambda kept: lambda: kept)(None).__closure__[0])  # type: ignore[index]

_RANK_MODULE, _RANK_CLASS, _RANK_INSTANCE, _RANK_THREADING, _RANK_NONE = range(5)
_PLAIN_KEYS = (str, int, float, bytes, type(None))


class Referred:
    """An object, and what is known of the references to it.

    Attributes
    ----------
    target : object
        The object. While its places are used nobody else of ours may refer to it.
    places : list of Place
        For the core's `exchange`.
    methods : list
        Bound methods of the object that somebody keeps.
    name : str
        How the program would write it: `module.variable`, `module.Class.attribute`, or "".
    stand_in : object
        What has been put in its places; None if nothing has.
    """

    __slots__ = ("_rank", "methods", "name", "places", "stand_in", "target")

    def __init__(self, target: object) -> None:
        self.target = target
        self.places: list[Place] = []
        self.methods: list[object] = []
        self.name = ""
        self.stand_in: object = None
        self._rank = _RANK_NONE

    def add(self, place: "Place", rank: int, name: str) -> None:
        """Add a place; its name is the object's if no better one is known."""
        self.places.append(place)
        if rank < self._rank:
            self._rank = rank
            self.name = name


_SLOT = type(Referred.__dict__["target"])


def find_places(objects: "Sequence[Referred]") -> None:
    """Find what refers to each of `objects`, in passes over all that gc knows."""
    owners = _Owners()
    wanted = {id(referred.target): (referred, 0) for referred in objects}
    ours = {id(referred.methods) for referred in objects}
    _collect([referred.target for referred in objects], wanted, owners, ours)
    kept = [method for referred in objects for method in referred.methods]
    if kept:
        wanted = {
            id(method): (referred, which)
            for referred in objects
            for which, method in enumerate(referred.methods, 1)
        }
        _collect(kept, wanted, owners, ours)


def instance_dict(instance: object) -> "dict[str, Any] | None":
    """Return an object's attributes without running code of its class; None if it has none."""
    for cls in type(instance).__mro__:
        getter = cls.__dict__.get("__dict__")
        if getter is not None:
            if not isinstance(getter, _GETSET):
                return None
            fields = getter.__get__(instance)
            return fields if isinstance(fields, dict) else None
    return None


def _collect(
    targets: "list[object]",
    wanted: "dict[int, tuple[Referred, int]]",
    owners: "_Owners",
    ours: set[int],
) -> None:
    for referrer in gc.get_referrers(*targets):
        if (
            referrer is targets
            or id(referrer) in ours
            or issubclass(type(referrer), _FRAME | Referred)
        ):
            continue
        if issubclass(type(referrer), _METHOD):
            found = wanted.get(id(referrer.__self__))
            if found is not None and found[1] == 0:
                found[0].methods.append(referrer)
            continue
        for kind, container, key, value in _held_by(referrer, owners):
            found = wanted.get(id(value))
            if found is not None:
                rank, name = owners.name(kind, container, key)
                found[0].add((kind, container, key, found[1]), rank, name)


def _held_by(referrer: "Any", owners: "_Owners") -> "Iterator[tuple[int, object, object, object]]":
    """Yield (kind, container, key, value) of everything in a container that can be changed."""
    if issubclass(type(referrer), dict):
        owner = owners.classes.get(id(referrer))
        kind, container = (IN_DICT, referrer) if owner is None else (IN_CLASS, owner)
        for key, value in list(dict.items(referrer)):
            if _compares_without_code(key):
                yield kind, container, key, value
    elif issubclass(type(referrer), list):
        for at, value in enumerate(list.copy(referrer)):
            yield IN_LIST, referrer, at, value
    elif issubclass(type(referrer), _CELL):
        yield IN_CELL, referrer, None, referrer.cell_contents
    elif not issubclass(type(referrer), type):
        fields = instance_dict(referrer)
        if fields is not None:
            owners.instances[id(fields)] = referrer
            for key, value in list(fields.items()):
                yield IN_DICT, fields, key, value
        for slot in _slots(type(referrer)):
            try:
                yield IN_SLOT, referrer, slot, slot.__get__(referrer)
            except AttributeError:  # not set
                continue


def _compares_without_code(key: object) -> bool:
    cls = type(key)
    return cls in _PLAIN_KEYS or (cls.__hash__ is object.__hash__ and cls.__eq__ is object.__eq__)


def _slots(cls: type) -> "Iterator[Any]":
    for base in cls.__mro__:
        if "__slots__" in base.__dict__:
            for value in list(base.__dict__.values()):
                if isinstance(value, _SLOT):
                    yield value


class _Owners:
    """Whose the dictionaries are: modules', classes', instances'."""

    def __init__(self) -> None:
        self._modules = {id(variables): name for name, variables in module_variables()}
        self.classes = {
            id(fields): cls
            for cls in gc.get_objects()
            if issubclass(type(cls), type)
            for fields in gc.get_referents(cls.__dict__)
        }
        self.instances: dict[int, object] = {}

    def name(self, kind: int, container: "Any", key: "Any") -> tuple[int, str]:
        """Return how good a name a place gives, and the name."""
        if kind == IN_CLASS:
            return _RANK_CLASS, f"{container.__module__}.{container.__qualname__}.{key}"
        if kind == IN_SLOT:
            return _attribute_name(type(container), key.__name__)
        if kind == IN_DICT:
            if id(container) in self._modules:
                return _RANK_MODULE, f"{self._modules[id(container)]}.{key}"
            instance = self.instances.get(id(container))
            if instance is None:  # no truth value is asked for: that would run the program's code
                instance = self._instance(container)
            if instance is not None:
                return _attribute_name(type(instance), key)
        return _RANK_NONE, ""

    def _instance(self, fields: "dict[str, Any]") -> object | None:
        """Return the instance whose attributes this dictionary is."""
        owner: object
        for owner in gc.get_referrers(fields):
            if not issubclass(type(owner), dict | list | tuple | _FRAME) and (
                instance_dict(owner) is fields
            ):
                self.instances[id(fields)] = owner
                return owner
        return None


def _attribute_name(cls: type, attribute: object) -> tuple[int, str]:
    rank = _RANK_THREADING if cls.__module__ == "threading" else _RANK_INSTANCE
    return rank, f"{cls.__module__}.{cls.__qualname__}.{attribute}"
