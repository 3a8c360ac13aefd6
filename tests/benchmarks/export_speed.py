"""How long a trace takes to be written in each format.

Usage: python tests/benchmarks/export_speed.py [--events 1000000] [--runs 3]

In the trace 16 threads take 24 locks in turn from 60 places, each waiting for one lock at a time,
holding it, and now and then another one within; half of the events are waits, half holds. (With
`--crowded` it is the one of `analysis_scale.py`, in which a thread waits for all locks at once and
from everywhere, which no program does.) Each export runs in a fresh interpreter, formats taking
turns; what is timed is loading the trace and writing the file, and memory is the largest resident
set since the start of the interpreter. The goal is 3 s for a million events.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import analysis_scale
import numpy as np

from contention_lab.export.registry import FORMATS
from contention_lab.trace import TraceBuilder
from contention_lab.trace.schema import HOLD, WAIT

THREADS: Final = 16
LOCKS: Final = 24
PLACES: Final = 60

CHILD: Final = """
import json, pathlib, sys, time
from contention_lab.export.export_format import ExportError
from contention_lab.export.registry import FORMATS
from contention_lab.trace import load
path, name, target = sys.argv[1:]
wall, cpu = time.perf_counter(), time.process_time()
with open(target, "wb") as sink:
    try:
        FORMATS[name].write(load(path), sink, None)
    except ExportError as error:
        sys.exit(str(error))
status = pathlib.Path("/proc/self/status").read_text().split()
print(json.dumps({
    "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu,
    "memory_mb": int(status[status.index("VmHWM:") + 1]) / 1024,
    "size_mb": pathlib.Path(target).stat().st_size / 1e6,
}))
"""


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--crowded", action="store_true")
    parser.add_argument("--format", action="append", choices=[*FORMATS], default=[])
    arguments = parser.parse_args()
    names = arguments.format or [*FORMATS]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scale.clt"
        write = analysis_scale.write_trace if arguments.crowded else write_trace
        events = write(path, arguments.events)
        for _ in range(arguments.runs):
            for name in names:
                if (run := _run(path, name, Path(folder) / "out")) is not None:
                    found[name].append(run)
    print(f"{events:,} events, {arguments.runs} runs, median (range)")
    for name, runs in found.items():
        print(_line(name, runs))
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")


def write_trace(path: Path, events: int) -> int:
    """Write a trace of about so many waits and holds; return how many they are."""
    builder = TraceBuilder(
        meta={"machine": {"cores": 2}, "python": {"version": "3.11", "gil": True}}
    )
    random = np.random.default_rng(1)
    frames = [builder.add_frame(f"step_{i}", f"/src/part_{i % 7}.py", 10 + i) for i in range(60)]
    locks = np.array([builder.add_lock("threading.Lock", site=frames[i]) for i in range(LOCKS)])
    stacks = np.array(
        [
            builder.add_stack(*random.choice(frames, size=6, replace=False).tolist())
            for _ in range(PLACES)
        ]
    )
    threads = np.array([builder.add_thread(f"worker {i}") for i in range(THREADS)])
    turns = events // (2 * THREADS)
    waits, holds = [], []
    for number in range(THREADS):
        waited = random.integers(1_000, 30_000, turns)
        length = random.integers(1_000, 20_000, turns)
        begin = np.cumsum(waited + length + 2_000) - waited - length
        place = random.integers(0, PLACES, turns)
        wait = np.zeros(turns, dtype=WAIT)
        wait["start_ns"], wait["end_ns"], wait["park_ns"] = begin, begin + waited, waited
        wait["lock"], wait["thread"] = locks[place % LOCKS], threads[number]
        wait["stack"] = stacks[place]
        wait["holder"] = threads[(number + 1) % THREADS]
        wait["holder_stack"] = stacks[place - LOCKS]
        hold = np.zeros(turns, dtype=HOLD)
        hold["start_ns"], hold["end_ns"] = begin + waited, begin + waited + length
        hold["lock"], hold["thread"] = wait["lock"], wait["thread"]
        hold["release_thread"], hold["stack"] = wait["thread"], wait["stack"]
        hold["waiters"] = 1
        within = np.arange(turns) % 10 == 5
        hold["start_ns"][within] = hold["start_ns"][np.flatnonzero(within) - 1] + 500
        hold["end_ns"][within] = hold["end_ns"][np.flatnonzero(within) - 1] - 400
        waits.append(wait)
        holds.append(hold)
    builder.add_waits(np.concatenate(waits))
    builder.add_holds(np.concatenate(holds))
    builder.write(path)
    return 2 * turns * THREADS


def _run(path: Path, name: str, target: Path) -> dict[str, Any] | None:
    command = [sys.executable, "-c", CHILD, str(path), name, str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: left out: {done.stderr.strip()}")
        return None
    run: dict[str, Any] = json.loads(done.stdout)
    return run


def _line(name: str, runs: list[dict[str, Any]]) -> str:
    if not runs:
        return f"{name:<12} not measured"
    wall, cpu = ([run[key] for run in runs] for key in ("wall_s", "cpu_s"))
    return (
        f"{name:<12} {statistics.median(wall):5.2f} s ({min(wall):.2f} to {max(wall):.2f}), "
        f"CPU {statistics.median(cpu):5.2f} s, {max(run['memory_mb'] for run in runs):6.0f} MB, "
        f"file {runs[0]['size_mb']:6.1f} MB"
    )


if __name__ == "__main__":
    main()
