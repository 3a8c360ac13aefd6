"""How much recording at level `profile` slows the flagship training down, on one thread.

Run it by hand: `python tests/benchmarks/flagship_cost.py [--rounds N]`. It trains the default batch
with and without a recording in turn, in one process, and prints the ratio of neighbouring runs:
median, quartiles and range. It asserts nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
from pathlib import Path

import contention_lab as cl
from contention_lab.autodiff import workload
from contention_lab.capture.metadata import usable_cores


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    ratios, walls = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flagship.clt"
        workload.run({}, 1)
        for turn in range(rounds):
            runs = {}
            for recorded in (turn % 2 == 0, turn % 2 == 1):
                around = (lambda: cl.record(path)) if recorded else None
                result = workload.run({}, 1, around) if around else workload.run({}, 1)
                runs[recorded] = result.wall_s
            ratios.append(runs[True] / runs[False])
            walls.append(runs[False])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print("| measured | median | quartiles | range | goal |")
    print("|---|---|---|---|---|")
    print(
        "| flagship training at 1 thread, level `profile` / not recorded | "
        f"{middle:.4f} | {low:.4f} to {high:.4f} "
        f"| {min(ratios):.3f} to {max(ratios):.3f} | ≤ 1.01 |"
    )
    print(
        f"\nCPython {platform.python_version()}, {usable_cores()} cores, {rounds} pairs, "
        f"{statistics.median(walls):.3f} s a run"
    )


if __name__ == "__main__":
    main()
