"""Findings about locks of native code: when they are true, and above all when they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from native_scene import MS, NativeScene

from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import ChunkKind
from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from contention_lab.diagnosis.finding import Finding

STORE = "/usr/lib/libstore.so.1"


class Store(NativeScene):
    """Three threads of which one puts things into a store while the next two wait, in turn."""

    def __init__(
        self,
        *,
        kind: NativeKind = NativeKind.MUTEX,
        wait_ms: float = 8,
        named: bool = True,
        python: bool = True,
        threads: int = 3,
        cores: int = 4,
        busy: int = 1,
        native_cpu: bool = False,
    ) -> None:
        super().__init__(cores=cores, duration_ms=900)
        put = self.stack("put", 7) if python else 0
        native = self.native_stack(("store", STORE), ("call", "/l/_store.so"))
        lock = self.lock(kind, "store", STORE)
        cpu_ns = 900 * MS * busy // threads * (not native_cpu)
        workers = [self.builder.add_thread(f"worker {k}", cpu_ns=cpu_ns) for k in range(threads)]
        common = {"stack": put, "native_stack": native}
        for turn in range(90):
            at = 10 * turn
            holder = workers[turn % threads]
            for waiter in workers:
                if waiter != holder or threads == 1:
                    other = holder if named else 0
                    self.wait(lock, waiter, at, at + wait_ms, holder=other, **common)
            if named:
                self.release(lock, holder, at + wait_ms, **common)
            self.builder.add_load(
                int((at + wait_ms / 2) * MS),
                threads=threads,
                runnable=busy,
                native_cpu_ns=turn * MS * native_cpu,
            )
        self.builder.set_status(process_cpu_ns=900 * MS)

    def diagnosis(self) -> Diagnosis:
        return diagnose(self.trace())

    def finding(self) -> Finding:
        [finding] = self.diagnosis().findings
        return finding


def test_threads_that_take_turns_in_a_library_wait_for_its_lock() -> None:
    finding = Store().finding()

    assert finding.kind == "external-lock"
    assert finding.severity == pytest.approx(8 / 10 * 2 / 3, abs=0.01)
    assert "2 of 3 threads wait in `put` for a lock inside libstore" in finding.summary
    assert finding.lock is not None
    assert finding.lock.name == "a lock inside libstore (store)"
    assert finding.lock.to_json()["library"] == "libstore"
    assert finding.lock.to_json()["type"] == "pthread_mutex"
    assert finding.lock.site is not None
    assert finding.lock.site.line == 7  # where it was first waited for
    [victim], [culprit] = finding.victims, finding.culprits
    assert victim.site is not None
    assert victim.site.function == "put"
    assert [frame.function for frame in victim.stack] == ["store", "call", "put"]
    assert [frame.function for frame in culprit.stack] == ["store", "call", "put"]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": NativeKind.COND},  # a pool of workers that sleeps
        {"kind": NativeKind.BARRIER},
        {"kind": NativeKind.SEMAPHORE},  # permits, or a signal
        {"kind": NativeKind.FUTEX},  # and no function that speaks of a lock
        {"wait_ms": 0.01},  # microseconds
        {"named": False},  # nobody knows who had it
        {"python": False},  # a library's own threads among themselves
        {"threads": 1},
        {"cores": 2, "busy": 2},  # whoever waits could not run anyway
        {"busy": 4, "native_cpu": True},
        {"busy": 12, "native_cpu": True},
    ],
)
def test_other_waits_in_native_code_accuse_nobody(changes: dict[str, Any]) -> None:
    diagnosis = Store(**changes).diagnosis()

    assert diagnosis.verdict == "healthy"
    assert diagnosis.findings == ()


def test_with_few_idle_cores_it_costs_no_more_than_these() -> None:
    assert Store(busy=3).finding().severity == pytest.approx(0.25)


def _with_a_lock_of_python(native_ms: int) -> Diagnosis:
    """Return a diagnosis of three threads under a lock, with a native wait in each hold of 9 ms."""
    scene = NativeScene(duration_ms=900)
    lock = scene.builder.add_lock("threading.Lock", name="catalog")
    native = scene.lock(NativeKind.MUTEX, "store", STORE)
    get, sweep = scene.stack("get", 3), scene.stack("sweep", 20)
    workers = [scene.thread(f"worker {k}") for k in range(3)]
    sweeper = scene.thread("sweeper")
    for turn in range(90):
        start, end = 10 * turn * MS, (10 * turn + 9) * MS
        holder = workers[turn % 3]
        scene.builder.add_hold(lock, holder, start, end, stack=get, waiters=2)
        for waiter in workers:
            if waiter != holder:
                scene.builder.add_wait(lock, waiter, start, end, stack=get, holder=holder)
        ends = 10 * turn + native_ms
        scene.wait(native, holder, 10 * turn, ends, stack=get, holder=sweeper)
        scene.release(native, sweeper, ends, stack=sweep)
    return diagnose(scene.trace())


def test_a_native_lock_behind_a_lock_of_python_is_told_instead_of_it() -> None:
    [finding] = _with_a_lock_of_python(native_ms=8).findings

    assert finding.kind == "external-lock"
    assert "that is most of what `catalog` costs" in finding.summary
    assert finding.severity > 0.5
    assert [party.site.function for party in finding.culprits if party.site] == ["sweep"]


def test_a_native_lock_that_is_a_small_part_of_a_hold_is_not_told_twice() -> None:
    findings = _with_a_lock_of_python(native_ms=4).findings

    assert "serialised-by-lock" in {finding.kind for finding in findings}
    assert "external-lock" not in {finding.kind for finding in findings}


def test_waiting_for_it_with_all_cores_busy_is_said_and_accuses_nobody() -> None:
    diagnosis = Store(cores=2, busy=2).diagnosis()

    assert diagnosis.summary.startswith("No lock limits this program: none that is recorded was")
    assert "for a lock inside libstore 1.4 s was waited, but no core was idle" in diagnosis.summary


def test_where_little_was_waited_in_native_code_nobody_is_said_not_to_have_waited() -> None:
    store = Store(wait_ms=0.4)
    store.builder.add_counter(store.builder.add_lock("Lock", name="index"), 1, acquires=5)

    assert store.diagnosis().summary == (
        "No lock limits this program: nobody had to wait for one of Python's; threads waited for "
        "a lock inside libstore for 2.7 % of their time."
    )


def _with_the_gil(native: bool) -> Diagnosis:
    """Return a diagnosis of threads that wait for the GIL of one that waits for a native lock."""
    scene = NativeScene(duration_ms=900)
    lock = scene.lock(NativeKind.MUTEX, "store", STORE)
    put = scene.stack("put", 7)
    workers = [scene.thread(f"worker {k}") for k in range(3)]
    add = scene.builder.add_layer_event
    for turn in range(90):
        has, waits, holds = (workers[(turn + k) % 3] for k in range(3))
        times = {"start_ns": 10 * turn * MS, "end_ns": (10 * turn + 9) * MS}
        if native:
            later = int(NativeWaitFlag.STACK_LATER)
            ends = 10 * turn + 9
            scene.wait(lock, has, 10 * turn, ends, stack=put, holder=holds, flags=later)
            scene.release(lock, holds, ends, stack=put)
        add(ChunkKind.GIL_WAITS, thread=waits, stack=put, **times)
        add(ChunkKind.GIL_HOLDS, thread=has, stack=put, **times)
    for worker in workers:
        shares = {"waits": 30, "wait_ns": 270 * MS, "holds": 30, "held_ns": 270 * MS}
        add(ChunkKind.GIL_TOTALS, thread=worker, **shares)
    return diagnose(scene.trace())


def test_who_waits_for_it_with_the_gil_makes_others_wait_for_that() -> None:
    [finding] = _with_the_gil(native=True).findings

    assert finding.kind == "external-lock"
    assert finding.evidence["gil_waits_behind_s"] == pytest.approx(0.81)
    assert "others wait 810 ms for the GIL that they keep" in finding.summary
    # Its own waiting and that for the GIL: 9 of 10 ms of two threads in three.
    assert finding.severity == pytest.approx(0.6, abs=0.01)


def test_without_it_the_same_threads_are_bound_by_the_gil() -> None:
    assert [finding.kind for finding in _with_the_gil(native=False).findings] == ["gil-bound"]


def test_a_library_that_takes_all_cores_in_turn_is_not_accused_on_a_busy_machine() -> None:
    # Its own threads got little CPU time, since others took it; but as many wanted some.
    diagnosis = Store(busy=4, native_cpu=True).diagnosis()

    assert diagnosis.findings == ()


def test_spinning_is_told_from_parking_where_both_are_known() -> None:
    scene = NativeScene(duration_ms=900)
    python = "/lib/libpython3.14t.so.1.0"
    slow = scene.native_stack(("_PyCriticalSection_BeginSlow", python), ("list_append", python))
    spun = scene.lock(NativeKind.YIELD, "_PyMutex_LockTimed", python)
    slept = scene.lock(NativeKind.SEMAPHORE, "_PySemaphore_Wait", python)
    stack = scene.stack("collect", 31)
    workers = [scene.thread(f"worker {k}") for k in range(2)]
    for turn in range(90):
        at, common = 10 * turn, {"stack": stack, "native_stack": slow}
        waiter, holder = workers[turn % 2], workers[(turn + 1) % 2]
        scene.wait(spun, waiter, at, at + 2, holder=holder, **common)
        scene.wait(slept, waiter, at + 2, at + 8, holder=holder, **common)

    [finding] = diagnose(scene.trace()).findings

    assert finding.lock is not None
    assert (finding.lock.name, finding.lock.type) == ("the list's own lock", "sem")
    assert finding.evidence["spin_s"] == pytest.approx(0.18)
    assert finding.evidence["park_s"] == pytest.approx(0.54)
    assert "720 ms in all (180 ms spinning, 540 ms parked)" in finding.summary


def test_a_spinlock_is_waited_for_on_a_cpu() -> None:
    finding = Store(kind=NativeKind.SPINLOCK).finding()

    assert "1.4 s in all, all of it spinning" in finding.summary
    assert finding.evidence["park_s"] == 0.0


def test_of_a_mutex_nothing_is_said_of_spinning() -> None:
    assert "spinning" not in Store().finding().summary
