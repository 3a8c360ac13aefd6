"""Records of one kind, a field at a time.

A record has a hundred bytes, and a question about all records needs a few of each: reading a field
of an array of records reads them whole. Here each field that is asked for becomes an array of its
own, once, and stays; one that is zero throughout takes no memory. Whole records are read from the
file when they are asked for. It does not know what records mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contention_lab.trace.mapped import let_go

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from contention_lab.trace.records import Records

TOGETHER: Final = (
    *("start_ns", "end_ns", "gil_ns", "lock", "thread", "stack", "outcome", "kind", "flags"),
    *("holder", "holder_site", "holder_stack", "site", "release_thread"),
)
"""Fields that nearly every analysis needs: the first that is asked for brings the others along."""


class Columns:
    """Records of one kind, by field; all that it returns is read-only.

    `columns["lock"]` is one field of all records; `columns[4]` is a record, and `columns[mask]` or
    `columns[positions]` are some of them, as of an array of records.

    Parameters
    ----------
    chunks
        What gives the records, in the order of the file: for each chunk its length, and a function
        that returns it as an array of `dtype`.
    dtype
        Of the records.
    replaced
        Returns which records are to be left out, by position, ascending.
    """

    def __init__(
        self,
        chunks: Sequence[tuple[int, Callable[[], Records]]],
        dtype: np.dtype[np.void],
        replaced: Callable[[Columns], npt.NDArray[np.int64]],
    ) -> None:
        self.dtype = dtype
        self._chunks = [read for _, read in chunks]
        self._begins = np.cumsum([0, *(length for length, _ in chunks)], dtype=np.int64)
        self._fields: dict[str, npt.NDArray[Any]] = {}
        self._kept: npt.NDArray[np.int64] | None = None
        left_out = replaced(self)
        if len(left_out):
            self._kept = np.delete(np.arange(len(self)), left_out)
            self._fields.clear()

    def __len__(self) -> int:
        return int(self._begins[-1]) if self._kept is None else len(self._kept)

    def __getitem__(self, which: Any) -> Any:
        """Return a field by its name, a record by its position, or an array of some records."""
        if isinstance(which, str):
            return self._field(which)
        if isinstance(which, int | np.integer):
            return self._records(np.array([which]))[0]
        chosen = np.asarray(which)
        return self._records(np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen)

    def once(self, *names: str) -> list[npt.NDArray[Any]]:
        """Return fields without keeping them: for what is asked of them once."""
        missing = [name for name in names if name not in self._fields]
        read = self._read(missing) if missing else {}
        return [read[name] if name in read else self._fields[name] for name in names]

    def _field(self, name: str) -> npt.NDArray[Any]:
        if name not in self._fields:
            known = self.dtype.names or ()
            several = [one for one in TOGETHER if one in known] if name in TOGETHER else [name]
            self._fields |= self._read(several)
        return self._fields[name]

    def _read(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        count = int(self._begins[-1])
        fields = {name: np.zeros(count, dtype=self.dtype[name]) for name in names}
        for begin, read in zip(self._begins[:-1].tolist(), self._chunks, strict=True):
            records = read()
            for name, field in fields.items():
                values = records[name]
                if values.any():  # memory that was never written to takes none
                    field[begin : begin + len(values)] = values
            let_go(records)
        if self._kept is not None:
            fields = {name: field[self._kept] for name, field in fields.items()}
        for field in fields.values():
            field.setflags(write=False)
        return fields

    def _records(self, positions: npt.NDArray[Any]) -> Records:
        at = positions if self._kept is None else self._kept[positions]
        at = np.where(at < 0, at + len(self), at)
        found = np.empty(len(at), dtype=self.dtype)
        ordered = bool((at[1:] >= at[:-1]).all())
        order = np.arange(len(at)) if ordered else np.argsort(at, kind="stable")
        at = at[order]
        first = np.searchsorted(at, self._begins)
        for number in np.flatnonzero(first[1:] > first[:-1]).tolist():
            part = slice(first[number], first[number + 1])
            records = self._chunks[number]()
            found[order[part]] = records[at[part] - self._begins[number]]
            let_go(records)
        found.setflags(write=False)
        return found
