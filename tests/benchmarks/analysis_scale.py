"""How time and memory of a diagnosis grow with the number of events.

Usage: python tests/benchmarks/analysis_scale.py [--events 1,2,5,10] [--runs 3] [--json]
                                                 [--shape locks|semaphores]

`--events` is in millions. What is measured
--------------------------------------------
A trace is made of 24 locks that 16 threads take turns at, half of its events waits and half holds,
as dense as a recording can be: every hold is waited for, up to 15 threads wait at a time, holds
last from one to twenty microseconds, every thousandth a millisecond; some are nested in others.
`--shape semaphores` makes semaphores of three permits of them, each permit as busy as a lock. There
are samples of all threads every two milliseconds, and the orders in which they took locks.
Each diagnosis runs in a fresh interpreter: `load`, `diagnose`, and the verdict as JSON. Time is
wall-clock time of these, and CPU time, which other programs disturb less. Memory is the largest
resident set of the process, the mapped trace file included, as Linux tells it since the start of
the interpreter (`getrusage` would count that of this program, which makes the trace). Runs of the
same trace must give the same JSON; it exits with 1 if they do not. Goals: 10 s and 1.5 GB at ten
million events, and a time per event that does not grow.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from contention_lab.trace import TraceBuilder
from contention_lab.trace.schema import HOLD, WAIT, State

LOCKS: Final = 24
THREADS: Final = 16
SHAPES: Final = {"locks": ("threading.Lock", 1), "semaphores": ("threading.Semaphore", 3)}
"""Type and permits."""
SAMPLED_NS: Final = 2_000_000
ORDERS: Final = 2_000
CHILD: Final = """
import hashlib, json, pathlib, sys, time
from contention_lab.diagnosis import diagnose
from contention_lab.trace import load
wall, cpu = time.perf_counter(), time.process_time()
text = json.dumps(diagnose(load(sys.argv[1])).to_json())
status = pathlib.Path("/proc/self/status").read_text().split()
print(json.dumps({
    "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu,
    "memory_mb": int(status[status.index("VmHWM:") + 1]) / 1024,
    "verdict": json.loads(text)["verdict"], "digest": hashlib.sha256(text.encode()).hexdigest(),
}))
"""


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", default="1,2,5,10", help="millions, separated by commas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shape", choices=SHAPES, default="locks")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for millions in map(float, arguments.events.split(",")):
            path = Path(folder) / "scale.clt"
            events = write_trace(path, round(millions * 1e6), arguments.shape)
            runs = [_run(path) for _ in range(arguments.runs)]
            rows.append(_row(events, path.stat().st_size, runs))
            if not arguments.json:
                print(_line(rows[-1]), flush=True)
    if arguments.json:
        print(
            json.dumps({"cores": os.cpu_count(), "python": platform.python_version(), "rows": rows})
        )
    else:
        load = os.getloadavg()[0]
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    return 0 if all(row["same"] for row in rows) else 1


def write_trace(path: Path, events: int, shape: str = "locks") -> int:
    """Write a trace of about so many waits and holds; return how many they are."""
    builder = TraceBuilder(
        meta={"machine": {"cores": 2}, "python": {"version": "3.11", "gil": True}}
    )
    random = np.random.default_rng(1)
    threads = [builder.add_thread(f"worker {i}") for i in range(THREADS)]
    frames = [builder.add_frame(f"step_{i}", f"/src/part_{i % 7}.py", 10 + i) for i in range(60)]
    stacks = [
        builder.add_stack(*random.choice(frames, size=6, replace=False).tolist())
        for _ in range(400)
    ]
    kind, permits = SHAPES[shape]
    turns = events // (2 * LOCKS * permits)
    waits, holds = [], []
    locks = [builder.add_lock(kind, site=frames[number]) for number in range(LOCKS)]
    for number, permit in itertools.product(range(LOCKS), range(permits)):
        lock = locks[number]
        length = random.integers(1_000, 20_000, turns)
        length[::1000] = 1_000_000
        end = np.cumsum(length)
        begin = end - length
        held = np.zeros(turns, dtype=HOLD)
        held["start_ns"], held["end_ns"], held["lock"] = begin + 100, end, lock
        thread = (np.arange(turns) + number + 5 * permit) % THREADS
        held["thread"] = held["release_thread"] = np.array(threads)[thread]
        held["site"] = random.choice(frames[30:40], turns)
        held["stack"] = random.choice(stacks, turns)
        held["waiters"] = 1
        waited = np.zeros(turns, dtype=WAIT)
        behind = random.integers(1, THREADS - 1, turns)
        waited["start_ns"] = begin[np.maximum(0, np.arange(turns) - behind)] + 200
        waited["end_ns"] = np.maximum(begin + 150, waited["start_ns"])
        waited["park_ns"] = waited["end_ns"] - waited["start_ns"]
        waited["lock"], waited["thread"] = lock, held["thread"]
        waited["stack"] = random.choice(stacks, turns)
        holder = np.array(threads)[(thread - behind) % THREADS]
        waited["holder"], waited["holder_site"] = holder, random.choice(frames[30:40], turns)
        waited["holder_stack"] = random.choice(stacks, turns)
        waited["waiters"] = behind - 1
        waits.append(waited)
        holds.append(held)
        for index, one in enumerate(threads):
            mine = thread == index
            wait_ns = int(waited["park_ns"][mine].sum())
            builder.add_counter(
                lock,
                one,
                acquires=int(mine.sum()),
                contended=int(mine.sum()),
                wait_ns=wait_ns,
                park_ns=wait_ns,
                hold_ns=int((held["end_ns"] - held["start_ns"])[mine].sum()),
            )
    for part, add in ((waits, builder.add_waits), (holds, builder.add_holds)):
        joined = np.concatenate(part)
        add(joined[np.argsort(joined["end_ns"], kind="stable")])
    last_ns = int(max(part["end_ns"].max() for part in holds))
    for time_ns in range(0, last_ns, 1_000_000):
        builder.add_gil_sample(time_ns, holder=threads[time_ns // 1_000_000 % THREADS])
    for time_ns, one in itertools.product(range(0, last_ns, SAMPLED_NS), threads):
        state = State.RUNNABLE if (time_ns // SAMPLED_NS + one) % 3 else State.AWAITS_GIL
        builder.add_state(time_ns, one, state, stack=int(random.choice(stacks)))
    for at in range(ORDERS):
        one, (held, lock) = threads[at % THREADS], random.choice(locks, 2, replace=False).tolist()
        held, lock = min(held, lock), max(held, lock)  # one order: no risk
        builder.add_order(one, lock, {held: frames[30]}, stack=stacks[at % 400])
    builder.write(path)
    return 2 * turns * LOCKS * permits


def _run(path: Path) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True
    )
    measured: dict[str, Any] = json.loads(answer.stdout)
    return measured


def _row(events: int, size: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    def median(name: str) -> float:
        return float(statistics.median(run[name] for run in runs))

    return {
        "events": events,
        "file_mb": size / 1e6,
        "wall_s": median("wall_s"),
        "wall_range_s": [min(run["wall_s"] for run in runs), max(run["wall_s"] for run in runs)],
        "cpu_s": median("cpu_s"),
        "memory_mb": max(run["memory_mb"] for run in runs),
        "verdict": runs[0]["verdict"],
        "same": len({run["digest"] for run in runs}) == 1,
    }


def _line(row: dict[str, Any]) -> str:
    low, high = row["wall_range_s"]
    return (
        f"{row['events'] / 1e6:5.1f} M events, {row['file_mb']:6.0f} MB: "
        f"{row['wall_s']:5.2f} s ({low:.2f} to {high:.2f}), CPU {row['cpu_s']:5.2f} s, "
        f"{row['cpu_s'] / row['events'] * 1e9:4.0f} ns per event, {row['memory_mb']:5.0f} MB, "
        f"{row['verdict']}, {'same' if row['same'] else 'DIFFERENT'} each time"
    )


if __name__ == "__main__":
    sys.exit(main())
