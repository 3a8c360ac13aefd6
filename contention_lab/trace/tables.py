"""The small tables of a trace: code objects, frames, stacks, locks, threads, metadata.

It turns payloads into tables by id; it does not read wait and hold records. Payloads have passed
their checksum but may still be nonsense, made by a broken or a hostile writer: a record that does
not fit ends its chunk, a record that cannot be true is left out, and both are told.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from contention_lab.trace.cells import cell_names
from contention_lab.trace.model import Frame, Lock, Thread
from contention_lab.trace.native_names import readable
from contention_lab.trace.varied import DEPTH_MASK, MalformedError, varied_records, word_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.trace.chunk import Chunk
    from contention_lab.trace.native_lines import Place
    from contention_lab.trace.records import Records

CODE: Final = struct.Struct("<IIII")
STACK: Final = struct.Struct("<II")
LOCK: Final = struct.Struct("<IIIIII")
THREAD: Final = struct.Struct("<IIQQQQII")
MAIN_THREAD: Final = 1
NOT_FROM_PYTHON: Final = 2
TASK: Final = 4


class Tables:
    """Tables by id, filled chunk by chunk.

    Attributes
    ----------
    meta
        Metadata, later keys over earlier ones.
    stacks, truncated_stacks
        Frame ids by stack id, innermost first, and the stacks that are longer than that.
    threads
        Threads by id, the last word about each.
    """

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.stacks: dict[int, tuple[int, ...]] = {}
        self.truncated_stacks: set[int] = set()
        self.threads: dict[int, Thread] = {}
        self._codes: dict[int, tuple[str, str, int]] = {}
        self._frames: dict[int, tuple[int, int, int]] = {}
        self._locks: dict[int, tuple[int, int, str, str]] = {}
        self._odd: Counter[str] = Counter()

    def add_meta(self, chunk: Chunk) -> None:
        """Read a META chunk."""
        try:
            update = _printable(json.loads(bytes(chunk.payload)))
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"is not JSON ({type(error).__name__})") from error
        if not isinstance(update, dict):
            raise MalformedError("is JSON, but not an object")
        self.meta.update(update)

    def add_codes(self, chunk: Chunk) -> None:
        """Read a CODES chunk."""
        for (code, first_line, *sizes), texts in varied_records(chunk, CODE, texts=2):
            del sizes
            self._insert(self._codes, code, (texts[0], texts[1], first_line), "code objects")

    def add_frames(self, records: Records) -> None:
        """Read the records of a FRAMES chunk."""
        columns = (records[name].tolist() for name in ("id", "code", "line", "lasti"))
        for frame, *place in zip(*columns, strict=True):
            code, line, at = place
            self._insert(self._frames, frame, (code, line, at), "frames")

    def add_stacks(self, chunk: Chunk) -> None:
        """Read a STACKS chunk."""
        for stack, depth, frames in word_lists(chunk):
            fresh = self._insert(self.stacks, stack, frames, "stacks")
            if fresh and depth != depth & DEPTH_MASK:
                self.truncated_stacks.add(stack)

    def add_locks(self, chunk: Chunk) -> None:
        """Read a LOCKS chunk."""
        for (lock, site, parent, *sizes), texts in varied_records(chunk, LOCK, texts=2):
            del sizes
            self._insert(self._locks, lock, (site, parent, texts[0], texts[1]), "locks")

    def add_threads(self, chunk: Chunk) -> None:
        """Read a THREADS chunk."""
        for numbers, texts in varied_records(chunk, THREAD, texts=1):
            thread, native_id, ident, start_ns, end_ns, cpu_ns, flags, _ = numbers
            if not thread:
                self._odd["threads have the id 0"] += 1
                continue
            self.threads[thread] = Thread(
                thread,
                native_id=native_id,
                ident=ident,
                name=texts[0],
                start_ns=start_ns,
                end_ns=end_ns,
                cpu_ns=cpu_ns,
                is_main=bool(flags & MAIN_THREAD),
                from_python=not flags & NOT_FROM_PYTHON,
                is_task=bool(flags & TASK),
            )

    def calls(self) -> dict[str, list[int]]:
        """Return the offsets of calls by file, of a program that is not Python."""
        found: dict[str, list[int]] = {}
        for code, line, at in self._frames.values():
            if code in self._codes and not line:
                found.setdefault(self._codes[code][1], []).append(at)
        return found

    def frames(
        self, places: Mapping[tuple[str, int], Place], *, native: bool = False
    ) -> dict[int, Frame]:
        """Return the frames whose code object is known, by id.

        Parameters
        ----------
        places
            Source file, line and function by file and offset, where the trace has no lines.
        native
            Functions have the names that the linker knows them by.
        """
        frames = {}
        cells = cell_names(self.meta)
        for frame, (code, line, at) in self._frames.items():
            known = self._codes.get(code)
            if known is None:
                self._odd["frames refer to code objects the file does not define"] += 1
                continue
            function, filename, first_line = known
            filename = cells.get(filename, filename)
            if native:
                function = readable(function)
            if not line:
                filename, line, own = places.get((filename, at), (filename, line, ""))
                function = own or function
            frames[frame] = Frame(function, filename, line, first_line)
        for ids in self.stacks.values():
            if not frames.keys() >= set(ids):
                self._odd["stacks refer to frames the file does not define"] += 1
        return frames

    def locks(self, frames: dict[int, Frame]) -> dict[int, Lock]:
        """Return the locks by id, in the order of creation."""
        parents = self._parents()
        instances: Counter[tuple[Frame | None, int]] = Counter()
        calls = self._calls(frames)
        locks = {}
        for lock in sorted(self._locks):
            site_id, _, kind, name = self._locks[lock]
            site = frames.get(site_id)
            if site_id and site is None:
                self._odd["locks refer to frames the file does not define"] += 1
            call = calls.get(site_id, 1)
            instances[site, call] += 1
            locks[lock] = Lock(
                lock, kind, name, site, parents[lock], instances[site, call], call=call
            )
        return locks

    def _calls(self, frames: dict[int, Frame]) -> dict[int, int]:
        """Return which of the calls on its line made a lock, by frame: from 1, as they run."""
        sites = {site for site, *_ in self._locks.values()} & frames.keys()
        lines: dict[tuple[int, int], set[int]] = {}
        for site in sites:
            code, line, at = self._frames[site]
            lines.setdefault((code, line), set()).add(at)
        order = {key: sorted(found) for key, found in lines.items()}
        return {
            site: 1 + order[code, line].index(at)
            for site in sites
            for code, line, at in (self._frames[site],)
        }

    def problems(self) -> Iterator[str]:
        """Yield what could not be true, one sentence each."""
        for what, times in sorted(self._odd.items()):
            yield f"{times} {what}"

    def _parents(self) -> dict[int, int]:
        """Return each lock's parent, 0 where it is unknown or a descendant of the lock."""
        parents = {}
        for lock, (_, parent, _, _) in self._locks.items():
            if parent and parent not in self._locks:
                self._odd["locks have a parent the file does not define"] += 1
                parent = 0
            parents[lock] = parent
        checked = {0}
        for lock in sorted(parents):
            path: dict[int, None] = {}
            while lock not in checked and lock not in path:
                path[lock] = None
                lock = parents[lock]
            if lock in path:
                self._odd["locks are their own ancestors"] += 1
                parents[lock] = 0
            checked.update(path)
        return parents

    def _insert(self, table: dict[int, Any], key: int, value: Any, what: str) -> bool:
        if not key or key in table:
            self._odd[f"{what} have the id 0 or one that is taken"] += 1
            return False
        table[key] = value
        return True


def _printable(value: Any) -> Any:
    """Escape lone surrogates, which JSON allows and no UTF-8 output can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return value
