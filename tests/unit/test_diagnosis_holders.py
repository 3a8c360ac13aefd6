"""Findings about what is done under a lock: when they are true, and above all when they are not."""

from __future__ import annotations

from typing import Any

import pytest
from coordination_scene import Scene

from contention_lab.diagnosis import Diagnosis, diagnose
from contention_lab.trace import Call, ChunkKind, State, Trace, TraceBuilder, WaitKind, parse
from contention_lab.trace.layer_schema import WorldCall

MS = 1_000_000


class Cache:
    """A thread that holds a lock for a while again and again, and readers that wait meanwhile.

    It holds for `hold_ms` every `period_ms`; four readers wait from its start to its end, each
    takes the lock `reads` times altogether, and holds it for 10 microseconds.
    """

    def __init__(
        self,
        *,
        state: State = State.BLOCKED,
        call: int = Call.SOCKET,
        gil: bool = False,
        native: float = 0.0,
        python: float = 0.0,
        turns: int = 20,
        hold_ms: int = 20,
        period_ms: int = 40,
        reads: int = 200,
        same_path: bool = False,
        library: bool = False,
        known: float = 1.0,
        gil_always: bool = False,
        has_gil: bool = True,
    ) -> None:
        meta = {"python": {"version": "3.11.7", "gil": has_gil}, "machine": {"cores": 4}}
        self.builder = builder = TraceBuilder(meta=meta, duration_ns=turns * period_ms * MS)
        made = builder.add_frame("Cache.__init__", "/src/cache.py", 5)
        refresh = builder.add_frame("Cache.refresh", "/src/cache.py", 20)
        fetch = builder.add_frame("fetch", "/src/net.py", 7)
        get = refresh if same_path else builder.add_frame("Cache.get", "/src/cache.py", 12)
        handle = builder.add_frame("Handler.handle", "/usr/lib/python3.11/logging/__init__.py", 1)
        lock = builder.add_lock("threading.Lock", name="cache", site=made)
        release = builder.add_stack(handle, refresh) if library else builder.add_stack(refresh)
        working, waiting = builder.add_stack(fetch, refresh), builder.add_stack(get)
        holder = builder.add_thread("refresher", cpu_ns=turns * MS)
        readers = [builder.add_thread(f"reader {k}") for k in range(4)]
        for turn in range(turns):
            start = turn * period_ms * MS
            end = start + hold_ms * MS
            builder.add_hold(
                lock, holder, start, end, site=refresh, stack=release, waiters=len(readers)
            )
            for reader in readers:
                builder.add_wait(
                    lock,
                    reader,
                    start,
                    end,
                    stack=waiting,
                    holder=holder,
                    holder_site=refresh,
                    holder_stack=working,
                    park_ns=end - start,
                )
            for at in range(round(hold_ms * known)):
                time = start + at * MS + MS // 2
                runs = at < hold_ms * native or at >= hold_ms * (1.0 - python)
                builder.add_state(
                    time,
                    holder,
                    State.RUNNABLE if runs else state,
                    call=0 if runs or state != State.BLOCKED else call,
                )
            for at in range(period_ms):
                mine = gil and hold_ms * native <= at < hold_ms
                mine = mine or hold_ms * (1.0 - python) <= at < hold_ms
                builder.add_gil_sample(
                    start + at * MS + MS // 2 + 1000,
                    holder if mine else readers[0] if gil_always else 0,
                    held=mine or gil_always,
                )
        held_ns = turns * hold_ms * MS
        builder.add_counter(lock, holder, acquires=turns, hold_ns=held_ns, max_hold_ns=hold_ms * MS)
        for reader in readers:
            builder.add_counter(
                lock,
                reader,
                acquires=reads,
                contended=turns,
                wait_ns=held_ns,
                hold_ns=reads * 10_000,
            )
        builder.set_status(process_cpu_ns=turns * hold_ms * MS // 2)

    def diagnosis(self) -> Diagnosis:
        return diagnose(parse(self.builder.bytes()))


# held-across-io


def test_a_lock_held_across_a_request_is_held_across_io() -> None:
    diagnosis = Cache().diagnosis()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "held-across-io"
    assert finding.severity == pytest.approx(0.4, abs=0.01)  # 4 of 5 threads, half of the time
    assert finding.culprits[0].site is not None
    assert finding.culprits[0].site.function == "fetch"
    # 0.4 s of holds, four waiters each: it is their time, and said to be.
    assert finding.evidence["hold_s"] == pytest.approx(0.408)
    assert finding.evidence["waited_while_holder_in_socket_s"] == pytest.approx(1.6)
    waited_s = finding.evidence["blamed_s"]
    for name, value in finding.evidence.items():
        assert not name.startswith("held_in_")
        if name.startswith("waited_while_holder_in_"):
            assert waited_s is not None
            assert value is not None
            assert value <= waited_s * 1.001
    assert finding.summary == (
        "4 of 5 threads stand still in `Cache.get` while `Cache.refresh` (cache.py:20) holds "
        "`cache` (threading.Lock, made at cache.py:5) across `fetch` (network traffic), 20 ms at a "
        "time: 40 % of their time; do that outside the lock."
    )
    assert finding.remedies[0].kind == "move-io-out"


@pytest.mark.parametrize(
    "changes",
    [
        {"state": State.RUNNABLE},  # native work
        {"native": 0.3},  # a good part of it is
        {"known": 0.0},  # nobody saw what it was
        {"state": State.AWAITS_LOCK},  # it waits for a lock of the C library
    ],
)
def test_without_nearly_all_of_it_blocked_it_is_not(changes: dict[str, Any]) -> None:
    diagnosis = Cache(**changes, same_path=True).diagnosis()

    assert diagnosis.verdict == "serialised-by-lock"


@pytest.mark.parametrize(
    ("changes", "is_held_across_io"),
    [
        ({"python": 0.3}, True),  # what is written is prepared under the lock, too
        ({"python": 0.6}, False),  # it is mostly that
        ({"python": 0.3, "native": 0.1}, False),  # some of that another core could do
        ({"python": 0.3, "turns": 1, "hold_ms": 15}, False),  # as far as is known
        ({"turns": 1, "hold_ms": 15}, True),  # it does not take much to know that it does nothing
    ],
)
def test_python_beside_io_changes_nothing_while_the_lock_is_held_for_io_for_most(
    changes: dict[str, Any], *, is_held_across_io: bool
) -> None:
    diagnosis = Cache(**changes, same_path=True).diagnosis()

    assert (diagnosis.verdict == "held-across-io") == is_held_across_io
    assert (diagnosis.verdict == "serialised-by-lock") != is_held_across_io


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"native": 0.3}, "move-io-out"),
        ({"native": 0.7}, "narrow"),
        ({"state": State.RUNNABLE}, "narrow"),
    ],
)
def test_of_a_lock_held_across_io_and_work_both_are_said(
    changes: dict[str, Any], remedy: str
) -> None:
    (finding,) = Cache(**changes, same_path=True).diagnosis().findings

    assert finding.kind == "serialised-by-lock"
    assert finding.remedies[0].kind == remedy
    assert (finding.evidence.get("waited_while_holder_in_socket_s") or 0.0) == pytest.approx(
        0.0 if changes.get("state") else 1.6 * (1.0 - changes["native"]), rel=0.01
    )


@pytest.mark.parametrize(("of_it", "function"), [(0.9, "receive"), (0.2, "fetch")])
def test_what_a_lock_is_held_across_is_where_calls_are_recorded(
    of_it: float, function: str
) -> None:
    cache = Cache()
    builder = cache.builder
    refresh = builder.add_frame("Cache.refresh", "/src/cache.py", 21)
    there = builder.add_stack(builder.add_frame("receive", "/src/net.py", 70), refresh)
    seen = builder.add_stack(builder.add_frame("fetch", "/src/net.py", 7), refresh)
    elsewhere = builder.add_stack(builder.add_frame("listen", "/src/net.py", 90))
    for turn in range(20):
        start = turn * 40 * MS
        middle = start + round(of_it * 20 * MS)
        for stack, begin, end in (
            (there, start, middle),
            (seen, middle, start + 20 * MS),
            (elsewhere, start + 20 * MS, start + 40 * MS),
        ):
            call = {"call": int(WorldCall.RECV), "thread": 1, "lock": 1, "stack": stack}
            builder.add_layer_event(ChunkKind.BLOCKING, start_ns=begin, end_ns=end, **call)
    (finding,) = cache.diagnosis().findings

    assert finding.culprits[0].site is not None
    assert finding.culprits[0].site.function == function
    assert f"across `{function}` (network traffic)" in finding.summary


def test_a_sleep_that_may_set_the_pace_is_no_certain_gain() -> None:
    remedy = Cache(call=Call.SLEEP).diagnosis().findings[0].remedies[0]

    assert remedy.text.startswith("Let `Cache.refresh` sleep before it takes `cache` or after")
    assert remedy.text.endswith("unless the sleep is there to set a pace.")


def test_holds_that_nobody_minds_do_not_shorten_those_that_block() -> None:
    cache = Cache()
    for turn in range(100):  # short holds of the same code, more of them, while nobody waits
        start = (turn // 5 * 40 + 25 + turn % 5) * MS
        cache.builder.add_hold(1, 1, start, start + 50_000, site=2, stack=1, waiters=1)
    (finding,) = cache.diagnosis().findings

    assert "20 ms at a time" in finding.summary


def test_little_waiting_for_io_is_no_finding() -> None:
    assert Cache(hold_ms=2).diagnosis().verdict == "healthy"


def test_one_thread_stands_and_several_stand() -> None:
    assert "1 of 2 threads stands still in" in diagnose(alone()).summary


def alone() -> Trace:
    """One reader that waits while another thread holds the lock across a request."""
    builder = TraceBuilder(meta={"machine": {"cores": 4}}, duration_ns=800 * MS)
    hold, wait = builder.add_frame("hold", "/src/a.py", 3), builder.add_frame("get", "/src/a.py", 9)
    lock = builder.add_lock("threading.Lock", name="one", site=hold)
    holder, reader = builder.add_thread("holder"), builder.add_thread("reader")
    for start in range(0, 800 * MS, 40 * MS):
        end = start + 30 * MS
        builder.add_hold(lock, holder, start, end, site=hold, stack=builder.add_stack(hold))
        builder.add_wait(lock, reader, start, end, holder=holder, stack=builder.add_stack(wait))
        for at in range(start, end, MS):
            builder.add_state(at + MS // 2, holder, State.BLOCKED, call=Call.SOCKET)
    return parse(builder.bytes())


# slow-holder-elsewhere


def test_seldom_slow_work_that_others_wait_for_is_a_slow_holder() -> None:
    diagnosis = Cache(state=State.RUNNABLE).diagnosis()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "slow-holder-elsewhere"
    assert finding.evidence["culprit_acquire_share"] == pytest.approx(20 / 820)
    assert finding.evidence["culprit_hold_s"] == pytest.approx(0.02)
    assert finding.evidence["other_hold_s"] == pytest.approx(1e-5)
    assert "holds it 20 ms at a time, in `fetch` (net.py:7)" in finding.summary
    assert "takes it in 2.4 % of the acquires" in finding.summary


def test_sleeping_in_a_callback_of_a_library_that_holds_is_a_slow_holder() -> None:
    assert Cache(library=True).diagnosis().verdict == "slow-holder-elsewhere"


@pytest.mark.parametrize(
    "changes",
    [
        {"same_path": True},  # those who wait do the same
        {"reads": 15},  # it takes the lock as often as others
    ],
)
def test_one_path_of_equals_is_no_slow_holder(changes: dict[str, Any]) -> None:
    diagnosis = Cache(state=State.RUNNABLE, **changes).diagnosis()

    assert diagnosis.verdict == "serialised-by-lock"


# gil-masked-lock


def test_a_lock_that_only_python_is_run_under_is_masked_by_the_gil() -> None:
    diagnosis = Cache(state=State.RUNNABLE, gil=True, gil_always=True).diagnosis()

    (finding,) = diagnosis.findings
    assert diagnosis.verdict == finding.kind == "gil-masked-lock"
    assert finding.evidence["python_share_of_holds"] == pytest.approx(1.0, abs=0.06)
    assert "only runs Python while it holds it" in finding.summary
    assert diagnosis.totals["gil_share"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"gil_always": False},  # the GIL is free for half of the time
        {"gil": False},  # it is native work
        {"native": 0.5},  # half of it is
        {"known": 0.0},
    ],
)
def test_a_lock_that_the_gil_does_not_explain_is_not_masked(changes: dict[str, Any]) -> None:
    settings = {"state": State.RUNNABLE, "gil": True, "gil_always": True, **changes}

    assert Cache(**settings).diagnosis().verdict != "gil-masked-lock"


def test_without_a_gil_no_lock_is_masked() -> None:
    builder = Cache(state=State.RUNNABLE, has_gil=False)
    builder.builder._gil.clear()  # no samples of what is not there
    diagnosis = builder.diagnosis()

    assert diagnosis.verdict == "slow-holder-elsewhere"
    assert diagnosis.totals["gil_share"] is None


def joining(*, end_ms: int = 0) -> Scene:
    """A thread that holds a lock, four threads wait for, while it waits for another one to end."""
    scene = Scene()
    lock = scene.lock("threading.Lock", 5)
    end = scene.builder.add_lock("threading.Thread", name="builder")
    holder = scene.thread("holder")
    others = [scene.thread(f"reader {k}") for k in range(4)]
    get, reload = scene.stack(("get", 12)), scene.stack(("join", 21), ("reload", 20))
    rebuild = scene.stack(("digest", 31), ("rebuild", 30))
    for turn in range(5):
        start = 20.0 + 180.0 * turn
        builder = scene.thread("builder", start, start + 150.0)
        scene.hold(lock, holder, start, start + 152.0, site=scene.frame("reload", 20), waiters=4)
        scene.wait(end, holder, start + 1.0, start + 150.0 - end_ms, reload)
        scene.seen(builder, rebuild, start, start + 150.0)
        for other in others:
            kind = WaitKind.CONTENTION
            scene.wait(lock, other, start, start + 152.0, get, by=holder, waking=reload, kind=kind)
    return scene


def test_a_thread_joined_under_a_lock_is_to_blame_before_whoever_joins_it() -> None:
    found = joining().diagnosis().findings[0]
    assert found.kind in {"serialised-by-lock", "slow-holder-elsewhere"}
    first, second = found.culprits[:2]
    assert first.site is not None
    assert first.site.function == "digest"
    assert second.code is not None
    assert second.code.function == "reload"
    assert "waits for `digest`" in found.summary


def test_a_join_that_is_a_small_part_of_a_hold_blames_nobody_else() -> None:
    found = joining(end_ms=120).diagnosis().findings[0]
    assert found.culprits[0].code is not None
    assert found.culprits[0].code.function == "reload"
