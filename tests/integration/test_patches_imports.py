"""Modules that come while recording, and importlib's own locks."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from recorded_facts import Facts, ms, run_threads

import contention_lab as cl
from contention_lab.trace.schema import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return what writes modules that the test can import."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(**sources: str) -> None:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("probe_"):
            del sys.modules[name]


def run(path: Path, program: str) -> str:
    """Run a program in an interpreter that has nothing imported; `record` is defined there."""
    head = f"""
        import sys
        from contention_lab.capture import patches
        import contention_lab as cl
        record = lambda **options: cl.record({str(path)!r}, **options)
    """
    source = textwrap.dedent(head) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_whoever_waits_for_an_import_has_no_frame_of_ours_on_his_stack(
    tmp_path: Path, modules: Callable[..., None]
) -> None:
    modules(probe_held="import time; time.sleep(0.3)")
    package = str(Path(cl.__path__[0]))
    seen: list[list[str]] = []

    def load() -> None:
        importlib.import_module("probe_held")

    with cl.record(tmp_path / "run.clt"):
        first, second = threading.Thread(target=load), threading.Thread(target=load)
        first.start()
        while "probe_held" not in sys.modules:
            time.sleep(0.001)
        second.start()
        while second.is_alive():
            assert second.ident is not None
            frame = sys._current_frames().get(second.ident)
            seen.append([entry.filename for entry in traceback.extract_stack(frame)])
            time.sleep(0.005)
        first.join()
    waiting = [names for names in seen if names[-1] == "<frozen importlib._bootstrap>"]
    assert len(waiting) > 5
    assert not [name for names in waiting for name in names if name.startswith(package)]


def test_two_threads_that_import_one_module_wait_for_its_import_lock(
    tmp_path: Path, modules: Callable[..., None]
) -> None:
    modules(probe_slow="import time; time.sleep(0.1)")
    start = threading.Barrier(2)

    def first() -> None:
        start.wait()
        importlib.import_module("probe_slow")

    with cl.record(tmp_path / "run.clt"):
        run_threads(first=first, second=first)
    facts = Facts(tmp_path / "run.clt")
    (found,) = facts.waits("import lock")
    assert facts.trace.locks[int(found["lock"])].name == "probe_slow"
    assert ms(found) >= 50
    assert found["outcome"] == Outcome.ACQUIRED
    assert {facts.name(found["thread"]), facts.name(found["holder"])} == {"first", "second"}
    assert facts.functions(found["holder_stack"])
    (hold,) = facts.holds("import lock")
    assert ms(hold) >= 90
    assert facts.name(hold["thread"]) == facts.name(found["holder"])
    assert facts.count("import lock", "acquires") >= 2


def test_imports_of_one_thread_leave_no_entries(
    tmp_path: Path, modules: Callable[..., None]
) -> None:
    modules(probe_outer="import probe_inner", probe_inner="")
    with cl.record(tmp_path / "run.clt", level="trace"):
        importlib.import_module("probe_outer")
    assert not Facts(tmp_path / "run.clt").locks("import lock")


def test_circular_imports_in_two_threads_still_find_a_way(
    tmp_path: Path, modules: Callable[..., None]
) -> None:
    modules(
        probe_left="import time; time.sleep(0.05); import probe_right; value = 1",
        probe_right="import time; time.sleep(0.05); import probe_left; value = 2",
    )
    start = threading.Barrier(2)
    got: list[int] = []

    def get(name: str) -> None:
        start.wait()
        got.append(importlib.import_module(name).value)

    with cl.record(tmp_path / "run.clt"):
        run_threads(left=lambda: get("probe_left"), right=lambda: get("probe_right"))
    assert sorted(got) == [1, 2]
    assert Facts(tmp_path / "run.clt").waits("import lock")


def test_a_failing_import_looks_as_without_us(tmp_path: Path, modules: Callable[..., None]) -> None:
    modules(probe_fails="1 / 0", probe_calls="import probe_fails")

    def frames() -> list[str]:
        with pytest.raises(ZeroDivisionError) as caught:
            importlib.import_module("probe_calls")
        return [f"{entry.path}:{entry.name}" for entry in caught.traceback]

    without = frames()
    with cl.record(tmp_path / "run.clt"):
        assert frames() == without
        with pytest.raises(ModuleNotFoundError, match="No module named 'probe_missing'"):
            importlib.import_module("probe_missing")


def test_the_import_system_looks_as_without_us(tmp_path: Path) -> None:
    before = list(sys.meta_path), list(sys.path_hooks), __import__, importlib.import_module
    with cl.record(tmp_path / "run.clt"):
        assert (list(sys.meta_path), list(sys.path_hooks), __import__, importlib.import_module) == (
            before
        )


def test_a_module_imported_while_recording_gets_our_lock_and_gives_it_back(
    tmp_path: Path, modules: Callable[..., None]
) -> None:
    modules(
        probe_user="""
            import threading
            from threading import Lock, RLock as Again
            lock = Lock()
        """
    )
    original = threading.Lock
    with cl.record(tmp_path / "run.clt"):
        module = importlib.import_module("probe_user")
        assert module.Lock is threading.Lock
        with module.lock:
            pass
    assert module.Lock is original
    assert threading.Lock is original
    assert Facts(tmp_path / "run.clt").count("threading.Lock", "acquires") >= 1


def test_names_that_modules_had_before_are_ours_while_recording(
    tmp_path: Path, modules: Callable[..., None]
) -> None:
    modules(
        probe_early="""
            import _thread
            from _thread import allocate_lock, allocate, RLock as Again
            from threading import Lock
            from queue import SimpleQueue
            KIND = type(Lock())
        """
    )
    module: Any = importlib.import_module("probe_early")
    without = dict(vars(module))
    path = tmp_path / "run.clt"
    with cl.record(path):
        assert threading.Lock is module.Lock
        makers = (module.allocate_lock, module.allocate, module.Lock, module._thread.allocate_lock)
        for make in makers:
            with make() as taken:
                assert taken
        assert isinstance(module.Lock(), module.KIND)
        assert isinstance(module.SimpleQueue(), without["SimpleQueue"])
        with module.Again():
            pass
    facts = Facts(path)
    assert facts.count("threading.Lock", "acquires") == len(makers)
    assert facts.count("threading.RLock", "acquires") == 1
    assert {name for name in without if vars(module)[name] is not without[name]} == set()


def test_nothing_is_imported_that_the_program_does_not_import(tmp_path: Path) -> None:
    program = """
        with record():
            before = set(sys.modules)
            wanted = {"asyncio", "multiprocessing", "numpy", "queue", "logging", "threading"}
            print(sorted(wanted & before), [name for name in before if name.startswith("typing")])
    """
    assert run(tmp_path / "run.clt", program) == "[] []\n"


def test_what_is_imported_while_recording_is_patched_when_it_comes(tmp_path: Path) -> None:
    program = """
        with record():
            import threading, queue, asyncio, multiprocessing
            from concurrent.futures import ThreadPoolExecutor
            semaphore = threading.Semaphore()
            with semaphore:
                pass
            async def main():
                async with asyncio.Lock():
                    pass
            asyncio.run(main())
            with multiprocessing.get_context("fork").Lock():
                pass
            with ThreadPoolExecutor(1) as pool:
                pool.submit(int).result()
            assert type(threading._allocate_lock()).__module__ == "_thread"
            assert threading._allocate_lock is not threading.Lock
        types = {lock.type for lock in cl.load(record().path).locks.values()}
        for name in ("threading.Semaphore", "asyncio.Lock", "multiprocessing.Lock",
                     "concurrent.futures.ThreadPoolExecutor"):
            assert name in types, (name, types)
        print("ok")
    """
    assert run(tmp_path / "run.clt", program) == "ok\n"


def test_a_module_that_is_reloaded_is_patched_anew(tmp_path: Path) -> None:
    program = """
        import importlib, queue, asyncio.locks
        with record():
            importlib.reload(asyncio.locks)
            importlib.reload(queue)
            async def main():
                async with asyncio.locks.Lock():
                    pass
            asyncio.run(main())
            line = queue.SimpleQueue()
            line.put(1)
            assert line.get() == 1
        assert cl.load(record().path).counters["acquires"].sum() >= 1
        types = {lock.type for lock in cl.load(record().path).locks.values()}
        assert "asyncio.Lock" in types, types
        print("ok")
    """
    assert run(tmp_path / "run.clt", program) == "ok\n"


def test_a_lazy_module_stays_lazy(tmp_path: Path) -> None:
    program = """
        import importlib.util
        spec = importlib.util.find_spec("sched")
        loader = importlib.util.LazyLoader(spec.loader)
        spec.loader = loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["sched"] = module
        loader.exec_module(module)
        from contention_lab.capture.undo import Undo
        undo = Undo()
        patches.install(undo)
        assert type(module).__name__ == "_LazyModule"
        undo.restore()
        with record(existing=True):
            assert type(module).__name__ == "_LazyModule"
        assert type(module).__name__ == "_LazyModule"
        assert module.scheduler
        print("ok")
    """
    assert run(tmp_path / "run.clt", program) == "ok\n"


def test_a_numpy_generators_lock_is_seen(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    program = """
        with record(level="trace"):
            import numpy
            generator = numpy.random.default_rng(1)
            generator.random(10)
            with generator.bit_generator.lock:
                pass
        trace = cl.load(record().path)
        sites = [lock.site for lock in trace.locks.values() if lock.type in (
            "threading.Lock", "threading.RLock")]  # numpy 1.x and 2.x
        assert any(site and site.filename == "<string>" for site in sites), sites
        print("ok")
    """
    assert run(tmp_path / "run.clt", program) == "ok\n"
