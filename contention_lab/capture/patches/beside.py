"""What we know about an object of the program, kept beside it and not in it.

`vars()`, pickling and copying of the object stay as they are. A record is a weak reference that
lies in a table under the object's id; it leaves the table when the object goes, before the id can
be another's.
"""

from contention_lab.native import _core

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


class Beside(_core.Beside, metaclass=_Kept):
    """A record about one object; a subclass says what is in it and has its own `table`."""

    __slots__ = ()
    table: "ClassVar[dict[int, Any]]"

    def __init_subclass__(cls) -> None:
        cls.table = {}

    @classmethod
    def of(cls, thing: object) -> "Self":
        """Return the record of a thing, in this recording, whenever it was made."""
        record = cls.table.get(id(thing))
        if record is None:
            record = cls.met(thing)
        if record.is_stale:
            record.forget()
        return record

    @classmethod
    def met(cls, thing: object) -> "Self":
        """Return a record of a thing that is seen for the first time, and was made earlier."""
        return cls(thing)

    @staticmethod
    def gone(record: "Beside") -> None:
        """Forget the object: it is being destroyed."""
        if record.table.get(record.key) is record:
            del record.table[record.key]
