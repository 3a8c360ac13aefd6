"""`cl.record()` inside a program: what it replaces while it records, and that it puts all back."""

from __future__ import annotations

import _thread
import logging
import os
import queue
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from threading import Lock as LockByName
from typing import Any

import pytest

import contention_lab as cl
from contention_lab.native import _core

ROOT = Path(cl.__path__[0]).parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.clt"


def is_ours(lock: object) -> bool:
    """Not by isinstance: there a stand-in passes for what it stands for."""
    return type(lock) in (_core.PlainLock, _core.PlainRLock)


def state_of_python() -> dict[str, Any]:
    """Return everything that a recording may replace in the modules loaded now."""
    seen: dict[str, Any] = {}
    for module in (_thread, threading, queue, logging, os, sys.modules[__name__]):
        for name, value in vars(module).items():
            seen[f"{module.__name__}.{name}"] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                for attribute, inner in vars(value).items():
                    if attribute not in ("__dict__", "__weakref__"):
                        seen[f"{module.__name__}.{name}.{attribute}"] = inner
    return {name: value for name, value in seen.items() if not name.endswith(".seen")}


def python(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": paths},
    )


def acquires(trace: cl.Trace, name: str) -> int:
    locks = [lock.id for lock in trace.locks.values() if lock.label == name]
    counters = trace.counters
    return int(sum(counters["acquires"][counters["lock"] == lock].sum() for lock in locks))


def test_everything_is_as_it_was_after_each_of_many_recordings(path: Path) -> None:
    before = state_of_python()

    for _ in range(5):
        with cl.record(path):
            assert is_ours(threading.Lock())
            assert is_ours(threading.RLock())
        after = state_of_python()
        changed = {name for name in before if after.get(name) is not before[name]}
        assert changed == set()
        assert set(after) == set(before)
    assert not is_ours(threading.Lock())


def test_a_lock_type_imported_by_name_before_the_start_is_seen(path: Path) -> None:
    with cl.record(path):
        lock = LockByName()
        with lock:
            pass

    assert is_ours(lock)
    trace = cl.load(path)
    name = "test_a_lock_type_imported_by_name_before_the_start_is_seen.lock"
    assert [lock.label for lock in trace.locks.values()].count(name) == 1


def test_a_lock_made_during_a_recording_works_on_after_it_and_in_the_next(path: Path) -> None:
    with cl.record(path):
        lock = threading.Lock()
        condition = threading.Condition()
    with lock, condition:
        condition.notify()
    with cl.record(path), lock:
        pass

    trace = cl.load(path)
    assert sum(int(count) for count in trace.counters["acquires"]) >= 1


def test_an_exception_in_the_block_passes_and_ends_the_recording(path: Path) -> None:
    with pytest.raises(KeyError), cl.record(path):
        raise KeyError(1)

    assert cl.load(path).complete
    assert not _core.active()


def test_a_second_recording_is_refused_by_the_name_of_the_first(path: Path) -> None:
    with cl.record(path):
        second = cl.record(path.with_name("other.clt"))
        with pytest.raises(RuntimeError, match=r"already recording to .*run\.clt .*sessions\.py"):
            second.start()
    assert not path.with_name("other.clt").exists()


def test_a_file_that_is_not_a_trace_is_not_replaced(path: Path) -> None:
    path.write_text("the only copy of my thesis")

    with pytest.raises(FileExistsError, match="not a trace"):
        cl.record(path).start()

    assert path.read_text() == "the only copy of my thesis"
    assert not is_ours(threading.Lock())


def test_an_earlier_trace_is_replaced(path: Path) -> None:
    with cl.record(path, level="trace"):
        for _ in range(1000):
            threading.Lock().acquire()
    before = path.stat().st_size
    with cl.record(path):
        pass

    assert path.stat().st_size < before
    assert cl.load(path).complete


def test_a_folder_that_is_not_there_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cl.record(tmp_path / "nowhere" / "run.clt").start()
    assert not _core.active()


def test_two_processes_do_not_write_one_trace(path: Path) -> None:
    with cl.record(path):
        answer = python(
            "import sys, contention_lab as cl\n"
            "try:\n"
            "    cl.record(sys.argv[1]).start()\n"
            "except BlockingIOError as error:\n"
            "    print(error.strerror)\n",
            str(path),
        )
    assert answer.stdout == "another recording is writing this file\n", answer.stderr
    assert cl.load(path).complete


def test_the_locks_of_the_standard_library_are_seen_in_any_case(path: Path) -> None:
    handler = logging.StreamHandler()
    original = id(logging._lock)  # type: ignore[attr-defined]  # a reference would forbid it
    with cl.record(path):
        assert is_ours(logging._lock)  # type: ignore[attr-defined]
        assert is_ours(handler.lock)
        with logging._lock:  # type: ignore[attr-defined]
            handler.acquire()
            handler.release()
    assert id(logging._lock) == original  # type: ignore[attr-defined]
    trace = cl.load(path)
    assert acquires(trace, "logging._lock") >= 1
    assert acquires(trace, "logging.StreamHandler.lock") == 1


EVERY_PLACE = """
import _thread, collections, functools, queue, sys, threading
import contention_lab as cl
from contention_lab.native import _core
def is_ours(lock):
    return type(lock) in (_core.PlainLock, _core.PlainRLock)

class Plain:
    shared = threading.Lock()
    def __init__(self):
        self.lock = threading.Lock()

class Slotted:
    __slots__ = ("lock",)

class WithDict(Plain):
    pass

plain, slotted, with_dict = Plain(), Slotted(), WithDict()
slotted.lock = threading.RLock()
vars(with_dict)  # its dictionary exists
in_module = threading.RLock()
in_list = [1, threading.Lock()]
by_key = {1: threading.Lock(), plain: threading.Lock()}
condition = threading.Condition(plain.lock)
bare = threading.Condition()
waiting = queue.Queue()
event, semaphore = threading.Event(), threading.BoundedSemaphore(2)
barrier = threading.Barrier(1)

def make():
    lock = threading.Lock()
    return lambda: lock
closure = make()

in_tuple = (threading.Lock(),)
held = threading.Lock()
held.acquire()

def replaced():
    return {
        "attribute": plain.lock, "class": Plain.shared, "slot": slotted.lock,
        "dictionary of an instance": with_dict.lock, "module": in_module, "list": in_list[1],
        "value": by_key[1], "value of an object": by_key[plain], "condition": condition._lock,
        "bare condition": bare._lock, "queue": waiting.mutex, "event": event._cond._lock,
        "queue's condition": waiting.not_empty._lock, "semaphore": semaphore._cond._lock,
        "barrier": barrier._cond._lock, "closure": closure(),
    }

def use():
    with condition:
        condition.notify_all(); condition.wait(0.001)
    with bare:
        bare.notify(); bare.wait_for(lambda: True)
    waiting.put(1); waiting.get()
    event.set(); event.wait(); event.clear()
    with semaphore, semaphore:
        assert not semaphore.acquire(blocking=False)
    barrier.wait()
    with in_module, in_module, closure(), Plain.shared, slotted.lock:
        pass

before = {name: id(lock) for name, lock in replaced().items()}
for _ in range(3):
    with cl.record(sys.argv[1], existing=True):
        during = replaced()
        missed = [name for name, lock in during.items() if not is_ours(lock)]
        assert not missed, missed
        assert plain.lock is condition._lock
        assert waiting.mutex is waiting.not_full._lock
        assert condition.acquire.__self__ is plain.lock
        use()
        del during
    left = [name for name, lock in replaced().items() if id(lock) != before[name]]
    assert not left, left
    assert condition.acquire.__self__ is plain.lock
    use()
assert not is_ours(in_tuple[0]) and held.locked()
assert not any(map(is_ours, replaced().values()))
"""


def test_with_existing_every_lock_is_exchanged_wherever_it_is_and_put_back(path: Path) -> None:
    answer = python(EVERY_PLACE, str(path))
    assert answer.returncode == 0, answer.stderr

    trace = cl.load(path)
    assert acquires(trace, "queue.Queue.mutex") >= 2
    assert acquires(trace, "__main__.in_module") == 1
    assert acquires(trace, "__main__.Plain.shared") == 1
    reasons = {note["why"]: note["count"] for note in trace.meta["not_seen"]}
    assert reasons["held"] == 1
    assert sum("cannot be changed" in reason for reason in reasons) == 1


def test_locks_are_exchanged_under_running_threads_without_letting_two_in(path: Path) -> None:
    answer = python(
        """
        import sys, threading, time
        import contention_lab as cl
        class Account:
            def __init__(self):
                self.lock, self.condition = threading.Lock(), threading.Condition()
                self.inside = self.total = self.bad = 0
            def work(self):
                while not done:
                    with self.lock:
                        self.inside += 1
                        if self.inside != 1:
                            self.bad += 1
                        self.total += 1
                        self.inside -= 1
                    with self.condition:
                        self.condition.notify()
                        self.condition.wait(0.0001)
        done = False
        sys.setswitchinterval(1e-5)
        account = Account()
        threads = [threading.Thread(target=account.work) for _ in range(4)]
        for thread in threads: thread.start()
        seen = 0
        for _ in range(15):
            with cl.record(sys.argv[1], existing=True):
                time.sleep(0.01)
        done = True
        for thread in threads: thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
        print(account.total > 100, account.bad)
        """,
        str(path),
    )
    assert answer.stdout == "True 0\n", answer.stderr


def test_what_is_not_seen_is_said(path: Path) -> None:
    answer = python(
        """
        import collections, dataclasses, functools, sys, threading
        import contention_lab as cl
        mine = [threading.Lock() for _ in range(7)]
        @dataclasses.dataclass
        class Record:
            lock: object = dataclasses.field(default_factory=threading.Lock)
        class Maker:
            make = threading.Lock
            also = staticmethod(threading.Lock)
        def default(make=threading.Lock): ...
        part, table = functools.partial(threading.Lock), collections.defaultdict(threading.Lock)
        with cl.record(sys.argv[1]):
            pass
        """,
        str(path),
    )
    assert answer.returncode == 0, answer.stderr

    notes = cl.load(path).meta["not_seen"]
    kept = {note["what"]: note["count"] for note in notes if " kept as " in note["what"]}
    assert kept["threading.Lock kept as a class attribute"] == 2
    assert kept["threading.Lock kept as a default argument"] == 1
    assert kept["threading.Lock kept as a dataclass field"] == 1
    assert kept["threading.Lock kept as a functools.partial"] == 1
    assert kept["threading.Lock kept as a defaultdict"] == 1
    made = [note for note in notes if "existing" in note["why"] and "RLock" not in note["what"]]
    assert [note["what"] for note in made] == ["threading.Lock"]
    assert made[0]["count"] >= 7


def test_the_summary_counts_what_the_trace_counts(path: Path) -> None:
    session = cl.record(path)
    with session:
        lock = threading.Lock()
        for _ in range(100):
            with lock:
                pass
    trace = cl.load(path)

    assert session.summary is not None
    assert session.summary.acquires == int(trace.counters["acquires"].sum()) >= 100
    assert session.summary.bytes_written == path.stat().st_size


def test_metadata_is_json_whatever_the_names_are(tmp_path: Path) -> None:
    path = tmp_path / "run.clt"
    answer = python(
        """
        import sys, contention_lab as cl
        path = sys.argv[1]
        sys.argv[1:] = ['"', '\\\\', '\\n\\x00\\x7f', '\\u00e4\\u20ac\\U0001f512', '\\udcff']
        with cl.record(path):
            pass
        """,
        str(path),
    )
    assert answer.returncode == 0, answer.stderr

    meta = cl.load(path).meta
    assert meta["argv"][1:] == ['"', "\\", "\n\x00\x7f", "\u00e4\u20ac\U0001f512", "\\udcff"]
    assert meta["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert meta["not_seen"] is not None


def test_libraries_with_locks_of_their_own_are_named_if_they_were_used(path: Path) -> None:
    program = """
        import sys, types
        import contention_lab as cl
        with cl.record(sys.argv[1]):
            for name in sys.argv[2:]:
                sys.modules[name] = types.ModuleType(name)
        """
    for modules in ([], ["trio", "gevent.lock"]):
        answer = python(program, str(path), *modules)
        assert answer.returncode == 0, answer.stderr
        said = [note["what"] for note in cl.load(path).meta["not_seen"]]
        assert sum("trio" in what for what in said) == ("trio" in modules)
        assert sum("gevent" in what for what in said) == ("gevent.lock" in modules)


def test_looking_for_locks_runs_none_of_the_programs_code(path: Path) -> None:
    answer = python(
        """
        import sys, threading
        import contention_lab as cl
        class Shy:
            def __init__(self):
                self.lock, self.other = threading.Lock(), threading.RLock()
            def __bool__(self): raise SystemError("asked for its truth value")
            def __eq__(self, other): raise SystemError("compared")
            def __hash__(self): raise SystemError("hashed")
            def __len__(self): raise SystemError("measured")
            def __getattr__(self, name): raise SystemError(name)
        shy = [Shy() for _ in range(3)]
        with cl.record(sys.argv[1], existing=True):
            with shy[0].lock, shy[1].other:
                pass
        """,
        str(path),
    )
    assert answer.returncode == 0, answer.stderr
    assert acquires(cl.load(path), "__main__.Shy.lock") == 1


def test_a_start_that_fails_leaves_every_lock_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room")

    before = threading._active_limbo_lock  # type: ignore[attr-defined]
    monkeypatch.setattr("contention_lab.capture.existing._exchange_anywhere", fail)
    with pytest.raises(MemoryError, match="no room"), cl.record(path):
        pass
    assert threading._active_limbo_lock is before  # type: ignore[attr-defined]
    assert not is_ours(threading.Lock())
