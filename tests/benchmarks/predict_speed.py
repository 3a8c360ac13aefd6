"""How long a prediction takes, and how much memory: eight remedies at 1 to 256 threads.

Usage: python tests/benchmarks/predict_speed.py [--events 1000000] [--runs 3] [--json]

The trace is that of 16 threads which take turns at six locks: half of its events are waits and half
holds, every hold is waited for, holds last from 20 to 200 microseconds (Python and native code by
turns) with thinking in between, and a second lock is nested in every tenth hold. Each prediction
runs in a fresh interpreter: `load`, the eight remedies at 1, 2, 4, ... 256 threads with intervals,
and the result as JSON. Memory is the largest resident set, the mapped trace included. The lock is
given: which one is the worst is a matter of `diagnose`, timed by `analysis_scale.py`. Goals for a
million events: 10 s, 500 MB.
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

import numpy as np

from contention_lab.trace import TraceBuilder
from contention_lab.trace.schema import HOLD, WAIT

THREADS: Final = 16
LOCKS: Final = 6
FIXES: Final = (
    *("narrow=work", "shard=8", "shard=per-object", "faster=work:50", "remove"),
    *("lock=mcs", "merge-calls=4", "async-backend"),
)
CHILD: Final = """
import json, pathlib, sys, time
from contention_lab.simulate.calibration import default_calibration
from contention_lab.simulate.prediction.as_json import prediction_json
from contention_lab.simulate.prediction.predict import Asked, predict
from contention_lab.trace import load
wall, cpu = time.perf_counter(), time.process_time()
calibration = default_calibration(16)
asked = Asked(tuple(1 << power for power in range(9)), fixes=tuple(sys.argv[2:]))
found = predict(load(sys.argv[1]), [1], calibration, recorded_cores=16, asked=asked)
text = json.dumps(prediction_json(found, calibration))
status = pathlib.Path("/proc/self/status").read_text().split()
print(json.dumps({
    "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu,
    "memory_mb": int(status[status.index("VmHWM:") + 1]) / 1024,
    "remedies": len(found.options),
}))
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scale.clt"
        events = write_trace(path, arguments.events)
        runs = [_run(path) for _ in range(arguments.runs)]
    row = {
        "events": events,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "wall_s": statistics.median(run["wall_s"] for run in runs),
        "cpu_s": statistics.median(run["cpu_s"] for run in runs),
        "memory_mb": max(run["memory_mb"] for run in runs),
        "remedies": runs[0]["remedies"],
    }
    if arguments.json:
        print(json.dumps(row))
    else:
        print(
            f"{row['events'] / 1e6:.2f} M events, {row['remedies']} remedies at 1 to 256 threads: "
            f"{row['wall_s']:.1f} s, CPU {row['cpu_s']:.1f} s, {row['memory_mb']:.0f} MB; "
            f"{row['cores']} cores, Python {row['python']}"
        )
    return 0


def write_trace(path: Path, events: int) -> int:
    """Write a trace of about so many waits and holds; return how many they are."""
    builder = TraceBuilder(
        meta={"machine": {"cores": 16}, "python": {"version": "3.11", "gil": True}}
    )
    random = np.random.default_rng(1)
    work = builder.add_frame("work", "/src/work.py", 12)
    locks = [builder.add_lock("threading.Lock") for _ in range(LOCKS)]
    stack = builder.add_stack(work)
    turns = events // 2 // THREADS
    length = random.integers(20_000, 200_000, (turns, THREADS))
    end = np.cumsum(length.ravel()).reshape(turns, THREADS)
    begin = end - length
    last = int(end.max()) + 1
    waits, holds = [], []
    for place in range(THREADS):
        thread = builder.add_thread(
            f"worker {place}", end_ns=last, cpu_ns=int(1.3 * length.sum() / THREADS)
        )
        held = np.zeros(turns, dtype=HOLD)
        held["start_ns"], held["end_ns"] = begin[:, place], end[:, place]
        held["lock"], held["thread"], held["release_thread"] = locks[0], thread, thread
        held["site"], held["stack"], held["waiters"] = work, stack, THREADS - 2
        held["cpu_ns"] = length[:, place]
        nested = held[::10].copy()
        nested["lock"] = random.choice(locks[1:], len(nested))
        nested["start_ns"] += 5_000
        nested["end_ns"] -= 5_000
        nested["waiters"], nested["cpu_ns"] = 0, 0
        holds += [held, nested]
        waited = np.zeros(turns, dtype=WAIT)
        before = np.concatenate([[0], end[:-1, place]])
        think = random.integers(1_000, 60_000, turns)
        waited["start_ns"] = np.minimum(before + think, begin[:, place])
        waited["end_ns"] = begin[:, place]
        waited["park_ns"] = waited["end_ns"] - waited["start_ns"]
        waited["lock"], waited["thread"], waited["stack"] = locks[0], thread, stack
        waits.append(waited)
        builder.add_counter(
            locks[0],
            thread,
            acquires=turns,
            contended=turns,
            hold_ns=int(length[:, place].sum()),
            wait_ns=int(waited["park_ns"].sum()),
            park_ns=int(waited["park_ns"].sum()),
        )
    for part, add in ((waits, builder.add_waits), (holds, builder.add_holds)):
        joined = np.concatenate(part)
        add(joined[np.argsort(joined["end_ns"], kind="stable")])
    for number, time_ns in enumerate(range(0, last, 1_000_000)):
        builder.add_gil_sample(time_ns, holder=1 + number % THREADS, held=number % 3 == 0)
    builder.write(path)
    return sum(len(part) for part in (*waits, *holds))


def _run(path: Path) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), *FIXES],
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict[str, Any] = json.loads(answer.stdout)
    return measured


if __name__ == "__main__":
    sys.exit(main())
