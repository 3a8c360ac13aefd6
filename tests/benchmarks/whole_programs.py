"""What recording costs whole programs: five real ones, each with and without `record`.

Every pair is the same program twice, one run right after the other and the order changing; a ratio
is that of a pair. The program times its own work (wall clock and the CPU time of all its threads,
ours among them); the whole process, with starting and ending, is timed from outside. Run: `python
tests/benchmarks/whole_programs.py`, with the packages of the extra `benchmark`; a program whose
package is not there is left out, and said so.

A machine that does other things at the time makes ratios of wall time wide: look at the range, and
at CPU time. `--save` collects pairs of several short runs in one file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS: dict[str, tuple[str, str | None]] = {
    "logging_service": ("logging-heavy service loop", None),
    "executor_pipeline": ("ThreadPoolExecutor pipeline", None),
    "joblib_job": ("joblib job on threads", "joblib"),
    "crawler": ("aiohttp crawler on loopback", "aiohttp"),
    "sql_pool": ("SQLAlchemy with a pool on SQLite", "sqlalchemy"),
}
"""By file in `programs`: what it is, and the package it needs."""

MEASURES = ("work, wall", "work, CPU", "process, wall")
GOAL = "goal: work slowed ≤ 1 % in the median of the programs, ≤ 3 % in the worst"

Times = tuple[float, float, float]
"""Of one run, in seconds: as in `MEASURES`."""


def run(program: str, options: list[str]) -> Times:
    """Run one program, recorded if there are options for it."""
    path = Path(__file__).parent / "programs" / f"{program}.py"
    before = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *options, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    whole = time.perf_counter() - before
    wall, cpu = map(float, done.stdout.split()[-2:])
    return wall, cpu, whole


def pair(program: str, number: int, level: str, against: str) -> tuple[Times, Times]:
    """Run one program without and with a recording; odd pairs the other way round.

    Against `no-layer`, it is recorded both times: without and with the layer below Python.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "run.clt")
        recorded = ["-m", "contention_lab", "record", "-q", "--level", level, "-o", trace]
        plain = [*recorded, "--no-native-layer"] if against == "no-layer" else []
        if number % 2:
            with_it = run(program, recorded)
            return run(program, plain), with_it
        return run(program, plain), run(program, recorded)


def describe(ratios: list[float]) -> str:
    """How much slower: the median and the range, in per cent."""
    low, middle, high = (
        100 * (r - 1) for r in (min(ratios), statistics.median(ratios), max(ratios))
    )
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def table(pairs: dict[str, list[tuple[Times, Times]]]) -> list[str]:
    """Return the table's lines, and the medians over the programs below it."""
    lines = [f"| program | pairs | seconds | {' | '.join(MEASURES)} |", "|---" * 6 + "|"]
    medians: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for program, of_program in pairs.items():
        cells = []
        for which, measure in enumerate(MEASURES):
            ratios = [recorded[which] / plain[which] for plain, recorded in of_program]
            medians[measure].append(100 * (statistics.median(ratios) - 1))
            cells.append(describe(ratios))
        seconds = statistics.median(plain[0] for plain, _recorded in of_program)
        what = PROGRAMS[program][0]
        lines.append(f"| {what} | {len(of_program)} | {seconds:.2f} | {' | '.join(cells)} |")
    for measure, values in medians.items():
        middle, worst = statistics.median(values), max(values)
        lines.append(f"{measure}: median of programs {middle:+.1f} %, worst {worst:+.1f} %")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--level", default="profile", choices=("counters", "profile", "trace"))
    parser.add_argument("--against", default="plain", choices=("plain", "no-layer"))
    parser.add_argument("--only", default="", help="programs whose file name contains this")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no pair after that long")
    parser.add_argument("--save", type=Path, help="add the pairs to those in this JSON file")
    arguments = parser.parse_args()
    pairs: dict[str, list[tuple[Times, Times]]] = {}
    if arguments.save is not None and arguments.save.exists():
        pairs = json.loads(arguments.save.read_text())
    chosen = []
    for program, (_what, package) in PROGRAMS.items():
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"left out: {program}, because {package} is not installed")
        elif arguments.only in program:
            chosen.append(program)
    load, began = os.getloadavg()[0], time.perf_counter()
    for number in range(arguments.pairs):
        for program in chosen:
            if time.perf_counter() - began < arguments.seconds:
                pairs.setdefault(program, []).append(
                    pair(program, number, arguments.level, arguments.against)
                )
    if arguments.save is not None:
        arguments.save.write_text(json.dumps(pairs))
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after; level {arguments.level}; median (range) of the pairs"
    )
    print("\n".join(table(pairs)))
    print(GOAL)


if __name__ == "__main__":
    main()
