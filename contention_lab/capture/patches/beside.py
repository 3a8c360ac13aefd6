"""What we know about an object of the program, kept beside it and not in it.

`vars()`, pickling and copying of the object stay as they are. A record is a weak reference that
lies in a table under the object's id; it leaves the table when the object goes, before the id can
be another's.
"""

from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self


class _Kept(type):
    """Puts a record into the table when it is complete: threads may come for it at once."""

    def __call__(cls, *args: "Any", **kwargs: "Any") -> "Any":
        record: Any = super().__call__(*args, **kwargs)
        known = record.table.setdefault(record.key, record)
        if known is record or known() is record():
            return known  # of two threads that made one, the first's
        record.table[record.key] = record
        return record


class Beside(ref, metaclass=_Kept):  # type: ignore[type-arg]
    """A record about one object; a subclass says what is in it and has its own `table`."""

    __slots__ = ("key",)
    table: "ClassVar[dict[int, Any]]"

    def __init_subclass__(cls) -> None:
        cls.table = {}

    def __new__(cls, thing: object, *_: object, **__: object) -> "Self":  # noqa: D102
        return ref.__new__(cls, thing, cls.gone)

    def __init__(self, thing: object) -> None:
        ref.__init__(self, thing, type(self).gone)  # type: ignore[call-arg]
        self.key = id(thing)

    @staticmethod
    def gone(record: "Beside") -> None:
        """Forget the object: it is being destroyed."""
        if record.table.get(record.key) is record:
            del record.table[record.key]
