"""How much recording at level `profile` slows the flagship training down, on one thread.

Run it by hand: `python tests/benchmarks/flagship_cost.py [--rounds N]`. It trains the default batch
with and without a recording in turn, each time in a fresh process (in one process the allocator's
state after a recording would be measured too), and prints the ratio of neighbouring runs: median,
quartiles and range. It asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from contention_lab.capture.metadata import usable_cores

RUN = """
import sys
import contention_lab as cl
from contention_lab.autodiff import workload
path = sys.argv[1]
around = {"around": lambda: cl.record(path)} if path else {}
result = workload.run({}, 1, **around)
print(result.wall_s, result.cpu_s)
"""


def measured(path: str) -> tuple[float, float]:
    """Return wall and CPU seconds of the batch, recorded to `path` if there is one."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    wall, cpu = done.stdout.split()
    return float(wall), float(cpu)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    ratios: dict[str, list[float]] = {"wall": [], "CPU": []}
    walls = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "flagship.clt")
        for turn in range(rounds):
            runs = {}
            for recorded in (turn % 2 == 0, turn % 2 == 1):
                runs[recorded] = measured(path if recorded else "")
            ratios["wall"].append(runs[True][0] / runs[False][0])
            ratios["CPU"].append(runs[True][1] / runs[False][1])
            walls.append(runs[False][0])
    print("| flagship at 1 thread, `profile` / not recorded | median | quartiles | range | goal |")
    print("|---|---|---|---|---|")
    for clock, values in ratios.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(
            f"| {clock} time | {middle:.3f} | {low:.3f} to {high:.3f} "
            f"| {min(values):.3f} to {max(values):.3f} | ≤ 1.01 |"
        )
    print(
        f"\nCPython {platform.python_version()}, {usable_cores()} cores, {rounds} pairs, "
        f"{statistics.median(walls):.3f} s a run"
    )


if __name__ == "__main__":
    main()
