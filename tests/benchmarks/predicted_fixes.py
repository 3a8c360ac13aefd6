"""Predicted fixes against the fixed programs: is what `predict` promises what happens?

Usage: python tests/benchmarks/predicted_fixes.py [--runs 5] [--threads 4] [--only CASE]
           [--calibration FILE] [--fastest] [--json]

Each case of `programs/fixable.py` is recorded once as it is. From that trace alone the batch time
is predicted for the same program with its lock dealt with (`--fix`), and with other thread counts.
Then the fixed program is run, without recording, in fresh processes by turns with the unfixed one;
the median counts. With `--fastest`, for machines that do other things meanwhile, the fastest run
counts, and the shortest of as many recordings. The error is that of the predicted time against the
measured one; that of the gain is shown, too. Intervals are meant to hold in 80 % of cases.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from contention_lab.trace import load

PROGRAM: Final = Path(__file__).parent / "programs" / "fixable.py"
FIXES: Final = {
    "native": ("narrow", "shard", "half"),
    "zlib": ("narrow", "shard"),
    "python": ("narrow", "half"),
    "sleep": ("move-out", "shard"),
    "mixed": ("narrow", "move-out", "shard"),
    "short": ("move-out", "narrow"),
    "spin-native": ("parking", "narrow"),
    "spin-sleep": ("parking", "move-out"),
}
"""Fixes of each case."""
WRITTEN: Final = {
    "narrow": "narrow=run",
    "move-out": "move-out=run",
    "shard": "shard=8",
    "half": "faster=run:50",
    "parking": "lock=parking",
}
"""How `--fix` says each."""


@dataclass(frozen=True)
class Row:
    """One prediction and what came of it."""

    case: str
    fix: str
    threads: int
    predicted_s: float
    low_s: float
    high_s: float
    measured_s: float
    gain: float
    measured_gain: float

    @property
    def error(self) -> float:
        """How much too long the prediction is."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def gain_error(self) -> float:
        """How much too large the promised gain is."""
        return self.gain / self.measured_gain - 1.0

    @property
    def is_covered(self) -> bool:
        """Whether the measured time lies in the interval."""
        return self.low_s <= self.measured_s <= self.high_s


def main() -> int:
    """Record, predict, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--only", choices=[*FIXES])
    parser.add_argument("--calibration", metavar="FILE", help="costs, as `predict` takes them")
    parser.add_argument("--fastest", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for case in FIXES if arguments.only is None else [arguments.only]:
        rows += judged(case, arguments)
        if not arguments.json:
            for row in rows[-len(FIXES[case]) - 3 :]:
                print(line(row), flush=True)
    if arguments.json:
        print(json.dumps([{**asdict(row), "error": row.error} for row in rows], indent=2))
        return 0
    errors = [abs(row.error) for row in rows]
    of_gains = statistics.median(abs(row.gain_error) for row in rows)
    print(
        f"{len(rows)} predictions: median error {statistics.median(errors):.1%}, "
        f"worst {max(errors):.0%}, of gains {of_gains:.1%}; "
        f"{statistics.mean(row.is_covered for row in rows):.0%} in their intervals; "
        f"{os.cpu_count()} cores, Python {platform.python_version()}"
    )
    return 0


def judged(case: str, asked: argparse.Namespace) -> list[Row]:
    """Return the rows of one case."""
    threads, runs = asked.threads, asked.runs
    others = [count for count in (1, threads // 2, 2 * threads) if count != threads]
    with tempfile.TemporaryDirectory() as folder:
        trace = _recorded(case, threads, Path(folder), runs if asked.fastest else 1)
        words = [word for fix in FIXES[case] for word in ("--fix", WRITTEN[fix])]
        words += ["--calibration", asked.calibration] if asked.calibration else []
        counts = ",".join(map(str, sorted({*others, threads})))
        answer = _tool("predict", str(trace), "--json", "--threads", counts, *words)
    found = json.loads(answer)
    wanted = [("none", threads), *((fix, threads) for fix in FIXES[case])]
    wanted += [("none", count) for count in others]
    taken: dict[tuple[str, int], list[float]] = {key: [] for key in wanted}
    for _ in range(runs):
        for fix, count in wanted:
            taken[fix, count].append(measured(case, fix, count))
    chosen = min if asked.fastest else statistics.median
    medians = {key: chosen(times) for key, times in taken.items()}
    before = _at(found["as_recorded"], threads)
    rows = []
    for fix, count in wanted[1:]:
        points = found["as_recorded"] if fix == "none" else _points(found, WRITTEN[fix])
        point = _at(points, count)
        rows.append(
            Row(
                case,
                fix,
                count,
                point["time_s"],
                point["low_s"],
                point["high_s"],
                medians[fix, count],
                before["time_s"] / point["time_s"],
                medians["none", threads] / medians[fix, count],
            )
        )
    return rows


def _recorded(case: str, threads: int, folder: Path, recordings: int) -> Path:
    """Record a case; of several recordings return the shortest."""
    paths = [folder / f"{number}.clt" for number in range(recordings)]
    for path in paths:
        _tool("record", "-o", str(path), str(PROGRAM), case, "none", str(threads))
    return min(paths, key=lambda path: load(path).duration_ns)


def measured(case: str, fix: str, threads: int) -> float:
    """Run the program once; return its batch time."""
    words = [sys.executable, str(PROGRAM), case, fix, str(threads)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def line(row: Row) -> str:
    """Return a row of the table."""
    return (
        f"{row.case:<12} {row.fix:<9} {row.threads:>2} threads: predicted {row.predicted_s:7.3f} s "
        f"({row.low_s:.3f} to {row.high_s:.3f}), measured {row.measured_s:7.3f} s, "
        f"error {row.error:+6.1%}{'' if row.is_covered else ' outside'}; gain {row.gain:5.2f}, "
        f"measured {row.measured_gain:5.2f}"
    )


def _points(found: dict[str, Any], fix: str) -> list[dict[str, Any]]:
    return next(one["points"] for one in found["remedies"] if one["fix"] == fix)


def _at(points: list[dict[str, Any]], threads: int) -> dict[str, Any]:
    return next(point for point in points if point["threads"] == threads)


def _tool(*words: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", "contention_lab", *words],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return answer.stdout


if __name__ == "__main__":
    sys.exit(main())
