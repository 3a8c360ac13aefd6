"""Sampling a running process: py-spy for its stacks, the kernel for the state of its threads.

It watches; `joining.py` makes samples of what was seen, and `sampled_trace.py` a trace of them.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contention_lab.sampling import py_spy, refusal
from contention_lab.sampling.joining import KernelLook, joined_samples
from contention_lab.sampling.runtime_state import GilReader, Region, runtime_region
from contention_lab.sampling.sampled_trace import sampled_trace
from contention_lab.sampling.sources import Sources
from contention_lab.sampling.thread_states import ThreadStates

if TYPE_CHECKING:
    from collections.abc import Callable

    from contention_lab.trace import TraceBuilder

_Fact = TypeVar("_Fact")

DEFAULT_RATE: Final = 100
DEFAULT_DURATION_S: Final = 10.0
_READ_LATER_NS: Final = 100_000_000
"""No program reads its sources sooner after its start, which is known to ten milliseconds."""
_MARGIN_S: Final = 10.0
"""py-spy takes some time to begin, and more on a busy machine."""
_FIND_AGAIN: Final = 50
"""Looks after which the GIL is looked for again, while it has not been found."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to sample.

    Attributes
    ----------
    rate
        Samples a second.
    duration_s
        How long.
    native
        With native frames, for each of which the process is stopped.
    """

    rate: int = DEFAULT_RATE
    duration_s: float = DEFAULT_DURATION_S
    native: bool = False


@dataclass(frozen=True, slots=True)
class _Target:
    """What is known of the process; empty or 0 what is not."""

    pid: int
    version: str
    region: Region | None
    argv: list[str]
    folder: str
    executable: str
    began_unix_ns: int


def check(pid: int, *, recorded_too: bool = False) -> str:
    """Return the version of the Python that a process runs, if it can be sampled.

    Parameters
    ----------
    pid
        The process.
    recorded_too
        It may be recorded meanwhile.

    Raises
    ------
    AttachError
        It cannot be sampled.
    """
    if pid == os.getpid():
        raise refusal.AttachError("this is the sampler's own process: give another PID")
    if sys.platform == "linux":
        if not Path(f"/proc/{pid}").exists():
            raise refusal.missing(pid)
        if not recorded_too and refusal.is_recorded(pid):
            raise refusal.already_recorded(pid)
    else:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            raise refusal.missing(pid) from None
        except PermissionError:
            pass  # another user's: py-spy says what that takes
    return py_spy.python_version(pid)


def attach(
    pid: int,
    options: Options,
    *,
    recorded_too: bool = False,
    version: str = "",
    goes_on: Callable[[], bool] = lambda: True,
    interruptible: bool = False,
) -> TraceBuilder:
    """Sample a process, and return a trace of it.

    Parameters
    ----------
    pid
        The process.
    options
        How.
    recorded_too
        It may be recorded meanwhile.
    version
        What `check` has said, if it was asked before.
    goes_on
        Asked at each look; sampling ends early where it says no.
    interruptible
        Ctrl-C ends it early as well, and is not passed on.

    Raises
    ------
    AttachError
        It cannot be sampled.
    """
    target = _target(pid, version or check(pid, recorded_too=recorded_too))
    looks: list[KernelLook] = []
    with tempfile.TemporaryDirectory(prefix="contention-lab-") as folder:
        begun_unix_ns = time.time_ns()
        begun_ns = time.monotonic_ns()
        longest_s = options.duration_s + _MARGIN_S
        path = Path(folder) / "stacks.json"
        spy = py_spy.Spy(pid, options.rate, longest_s, path, native=options.native)
        try:
            cpu = _watch(target, options, spy, looks, goes_on, interruptible)
            ended_ns = time.monotonic_ns()
            recorded = spy.stop()
        finally:
            spy.kill()
    if not recorded.samples and not any(line.stacks for line in recorded.lines):
        raise refusal.ended(pid)
    joined = joined_samples(
        recorded.lines,
        looks,
        target.region,
        cpu,
        native=options.native,
        pid=pid,
        end_ns=ended_ns,
        pause_ns=1_000_000_000 // options.rate,
    )
    read_ns = target.began_unix_ns + _READ_LATER_NS if target.began_unix_ns else None
    return sampled_trace(
        joined.samples,
        joined.threads,
        Sources(read_ns, *_folders(target)),
        about={
            "source": py_spy.NAME,
            "interval_ns": joined.duration_ns // max(1, joined.looks),
            "looks": joined.looks,
            "failed": recorded.errors,
            "native": options.native,
            "timed": True,
            "on_cpu_only": False,
            "states_known": joined.states_known,
            **({} if read_ns is None else {"sources_read_unix_ns": read_ns}),
            "native_running": joined.native_running,
            **({} if joined.gil_held is None else {"gil_held": joined.gil_held}),
        },
        meta=_meta(target),
        duration_ns=joined.duration_ns,
        pid=pid,
        start_unix_ns=begun_unix_ns + joined.begun_ns - begun_ns,
    )


def _watch(
    target: _Target,
    options: Options,
    spy: py_spy.Spy,
    looks: list[KernelLook],
    goes_on: Callable[[], bool],
    interruptible: bool,
) -> dict[int, int]:
    """Look at the threads until the time is over; return the CPU time of each meanwhile.

    The pace is uneven, so that a program with a rhythm of its own is not always met at one beat.
    """
    if sys.platform != "linux":
        _only_wait(options, spy, goes_on, interruptible)
        return {}
    states = ThreadStates(target.pid)
    gil = GilReader(target.pid, target.region) if target.region is not None else None
    end = time.monotonic() + options.duration_s
    found = False
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    try:
        while not spy.ended and (now := time.monotonic()) < end and goes_on():
            at = dict(states.look())
            holder = None
            if gil is not None:
                if not found and len(looks) % _FIND_AGAIN == 0:
                    found = gil.find(at)
                holder = gil.holder()
            looks.append(KernelLook(time.monotonic_ns(), at, holder))
            if len(looks) % options.rate == 1:
                after = states.cpu_ns()
                before = {**after, **before}
            pause = random.uniform(0.5, 1.5) / options.rate
            time.sleep(max(0.0, min(pause - (time.monotonic() - now), end - time.monotonic())))
        after = {**after, **states.cpu_ns()}
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended
    except KeyboardInterrupt:
        if not interruptible:
            raise
    finally:
        states.close()
        if gil is not None:
            gil.close()
    return {number: after[number] - before.get(number, 0) for number in after}


def _only_wait(
    options: Options, spy: py_spy.Spy, goes_on: Callable[[], bool], interruptible: bool
) -> None:
    end = time.monotonic() + options.duration_s
    try:
        while not spy.ended and time.monotonic() < end and goes_on():
            time.sleep(0.05)
    except KeyboardInterrupt:
        if not interruptible:
            raise


def _folders(target: _Target) -> tuple[Path, Path]:
    root = Path(f"/proc/{target.pid}/root")
    same = not root.exists() or os.path.realpath(root) == "/"
    return (Path("/") if same else root), Path(target.folder or "/")


def _target(pid: int, version: str) -> _Target:
    proc = Path(f"/proc/{pid}")
    return _Target(
        pid,
        version,
        region=_known(lambda: runtime_region(pid), None),
        argv=_known(lambda: _words(proc / "cmdline"), []),
        folder=_known(lambda: str((proc / "cwd").readlink()), ""),
        executable=_known(lambda: str((proc / "exe").readlink()), ""),
        began_unix_ns=_known(lambda: _began_unix_ns(proc), 0),
    )


def _known(read: Callable[[], _Fact], unknown: _Fact) -> _Fact:
    """Return one fact, by itself: it is unknown where this is not Linux or it may not be read."""
    try:
        return read()
    except (OSError, ValueError):
        return unknown


def _words(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "replace").split("\0")[:-1]


def _began_unix_ns(proc: Path) -> int:
    ticks = int((proc / "stat").read_text().rpartition(")")[2].split()[19])
    since_boot_ns = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot_ns


def _meta(target: _Target) -> dict[str, Any]:
    uname = os.uname()
    affinity = getattr(os, "sched_getaffinity", None)
    try:
        cores = len(affinity(target.pid)) if affinity else os.cpu_count() or 1
    except OSError:
        cores = os.cpu_count() or 1
    script = next((word for word in target.argv[1:] if not word.startswith("-")), "")
    return {
        "program": script,
        "argv": target.argv[1:],
        "cwd": target.folder,
        "python": {
            "version": target.version,
            "implementation": "CPython",
            "gil": "t" not in target.version,
            "executable": target.executable,
        },
        "machine": {
            "cores": cores,
            "system": uname.sysname,
            "release": uname.release,
            "processor": uname.machine,
        },
        "level": "samples",
    }
