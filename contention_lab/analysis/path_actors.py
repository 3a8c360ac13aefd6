"""Who could go on when, for the critical path: the waits of threads and tasks by their end.

A task runs on a thread, its host: what the host did before some moment includes what its tasks
did. A thread did nothing before its first event: then it is whoever started it that counts. Work
items of a pool wait as parties of their own, but nothing runs under their names.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from contention_lab.analysis.overlap import on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from contention_lab.trace import Trace

    Integers = npt.NDArray[np.int64]
    Ids = npt.NDArray[np.integer[Any]]


class Actors:
    """The waits of each actor, findable by time.

    Parameters
    ----------
    trace
        A trace.
    actor, lock, start, back
        Of waits in the order of their end: whose, for what, since when, until when.
    parents
        Who started a thread, where that is known; the main thread did the others.
    """

    def __init__(
        self,
        trace: Trace,
        actor: Ids,
        lock: Ids,
        start: Integers,
        back: Integers,
        parents: Mapping[int, int],
    ) -> None:
        self._trace = trace
        self._actor, self._lock, self._start, self._back = actor, lock, start, back
        self._ids = np.unique(np.concatenate([actor, np.array([*trace.threads], dtype=np.uint32)]))
        place = np.searchsorted(self._ids, actor)
        every = np.arange(len(actor), dtype=np.int32)
        hosted, host = self._hosted(place)
        place = np.concatenate([place, host[hosted]])
        every = np.concatenate([every, np.flatnonzero(hosted).astype(np.int32)])
        times = back[every]
        order = np.lexsort((every, place)) if hosted.any() else _by(place)
        self._wait, self._place, self._times = every[order], place[order], times[order]
        self._origin, self._since = self._origins(parents)

    def last_before(self, who: Ids, when: Integers) -> npt.NDArray[np.int32]:
        """Return the last wait of each actor that ended by then, -1 if there is none.

        Before its first event, it is that of whoever started the actor.
        """
        place, when = self._places(who), when.copy()
        found = self._search(place, when)
        missing = np.flatnonzero(found < 0)
        for _ in range(len(self._ids)):
            missing = missing[self._origin[place[missing]] >= 0]
            if not len(missing):
                break
            when[missing] = self._since[place[missing]]
            place[missing] = self._origin[place[missing]]
            found[missing] = self._search(place[missing], when[missing])
            missing = missing[found[missing] < 0]
        return found

    def by_origin(
        self, who: Ids, since: Integers, until: Integers
    ) -> tuple[Ids, Integers, Integers]:
        """Divide spans of actors: before its first event, each was whoever started it.

        Returns
        -------
        tuple
            Ids, starts and ends.
        """
        place, begun = self._places(who), [(who[:0], since[:0], until[:0])]
        for _ in range(len(self._ids)):
            early = (self._origin[place] >= 0) & (since < self._since[place])
            begin = np.where(early, np.minimum(self._since[place], until), since)
            begun.append((self._ids[place], begin, until))
            since, until, place = since[early], begin[early], self._origin[place[early]]
            if not len(place):
                break
        ids, starts, ends = (np.concatenate(column) for column in zip(*begun, strict=True))
        return ids, starts, ends

    def previous(self) -> npt.NDArray[np.int32]:
        """Return the last wait of the same actor that ended before each, -1 if there is none."""
        count = len(self._actor)
        order = _by(np.searchsorted(self._ids, self._actor)).astype(np.int32)
        previous = np.full(count, -1, dtype=np.int32)
        same = self._actor[order[1:]] == self._actor[order[:-1]]
        previous[order[1:][same]] = order[:-1][same]
        return previous

    def joins(self, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
        """Yield the waits for the end of a thread that ended: wait, thread, and when.

        The entry that is waited for has the thread's name; of several, it is the one whose end is
        nearest to that of the wait.
        """
        named: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for thread in self._trace.threads.values():
            if thread.end_ns and not thread.is_task:
                named[thread.name].append((thread.end_ns, thread.id))
        joins = [
            lock.id
            for lock in self._trace.locks.values()
            if lock.type.startswith("threading.Thread")
        ]
        for at in np.flatnonzero(chosen & np.isin(self._lock, joins)).tolist():
            back = int(self._back[at])
            ends = named.get(self._trace.lock(int(self._lock[at])).name, ())
            nearest = min(ends, key=lambda end: (abs(end[0] - back), end[1]), default=None)
            if nearest is not None and nearest[0] > self._start[at]:
                yield at, nearest[1], min(nearest[0], back)

    def _search(self, place: npt.NDArray[np.intp], when: Integers) -> npt.NDArray[np.int32]:
        if not len(self._wait) or not len(place):
            return np.full(len(place), -1, dtype=np.int32)
        line, needles = on_one_line((self._place, self._times), (place, np.maximum(when, 0)))
        at = np.searchsorted(line, needles, side="right") - 1
        found = np.where((at >= 0) & (self._place[at] == place), self._wait[at], -1)
        return found.astype(np.int32)

    def _places(self, who: Ids) -> npt.NDArray[np.intp]:
        """Return positions in the table of ids; an id nobody knows is taken for its neighbour's."""
        return np.minimum(np.searchsorted(self._ids, who), len(self._ids) - 1)

    def _hosted(
        self, place: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Return which waits are those of tasks, and the places of their hosts."""
        threads = self._trace.threads
        if not any(thread.is_task for thread in threads.values()):
            return np.zeros(len(place), dtype=np.bool_), place
        hosts = self._hosts()
        host = np.array([hosts.get(int(i), -1) for i in self._ids])
        pools = [
            lock.id for lock in self._trace.locks.values() if lock.type.startswith("concurrent.")
        ]
        return (host[place] >= 0) & ~np.isin(self._lock, pools), host[place]

    def _hosts(self) -> dict[int, int]:
        """Return the place of the thread each task runs on."""
        threads = self._trace.threads.values()
        by_native = {thread.native_id: thread.id for thread in threads if not thread.is_task}
        return {
            task.id: int(np.searchsorted(self._ids, by_native[task.native_id]))
            for task in threads
            if task.is_task and task.native_id in by_native
        }

    def _origins(self, parents: Mapping[int, int]) -> tuple[npt.NDArray[np.intp], Integers]:
        """Return for each actor the place of whoever started it (-1 for none), and when."""
        threads = self._trace.threads
        main = next((thread.id for thread in threads.values() if thread.is_main), 0)
        hosts = self._hosts()
        origin = np.full(len(self._ids), -1)
        since = np.zeros(len(self._ids), dtype=np.int64)
        for at, number in enumerate(self._ids.tolist()):
            thread = threads.get(number)
            if thread is None or number == main:
                continue
            since[at] = min(thread.start_ns, 1 << 53)
            if thread.is_task:
                origin[at] = hosts.get(number, -1)
                continue
            by = parents.get(number, 0)
            begun_before = by in threads and threads[by].start_ns < thread.start_ns
            parent = by if begun_before else main
            origin[at] = np.searchsorted(self._ids, parent) if parent else -1
        return origin, since


def _by(place: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the order by place that keeps the order within one."""
    small = place.astype(np.uint16) if place.max(initial=0) < 1 << 16 else place
    return np.argsort(small, kind="stable")
