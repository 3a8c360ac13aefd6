"""What `predict --no-gil` says against a free-threaded Python: does the program scale so?

Usage: python tests/benchmarks/no_gil.py [--runs 5] [--threads 1,2,4,8] [--only CASE] [--json]
           [--python PROGRAM]

Each case of `programs/fixable.py` is recorded with this interpreter, at as many threads as there
are cores, and predicted without the GIL. Then it runs on a free-threaded interpreter, without
recording, thread counts by turns; the median counts. Free-threaded builds run one thread slower or
faster than others, which no trace can tell: so times are compared relative to one thread, on both
sides; the measured seconds are shown, too. An interpreter is looked for in PATH and pyenv: one for
which `sys._is_gil_enabled()` is false when it is asked to run without (`PYTHON_GIL=0`, whatever the
environment says). Where there is none, it says so and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM: Final = Path(__file__).parent / "programs" / "fixable.py"
CASES: Final = ("native", "python", "sleep", "mixed", "short")
PROBE: Final = "import sys; sys.exit(getattr(sys, '_is_gil_enabled', lambda: True)())"
"""Ends with 0 if there is no GIL."""
FREE: Final = {**os.environ, "PYTHON_GIL": "0"}
"""Environment of free-threaded runs: no extension module turns the GIL on again. An interpreter
that cannot do without a GIL refuses to start."""


def main() -> int:
    """Find an interpreter, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", default="1,2,4,8")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--python", metavar="PROGRAM", help="the free-threaded interpreter")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.python and not is_free_threaded(arguments.python):
        parser.error(f"--python {arguments.python}: not an interpreter that runs without a GIL")
    python = arguments.python or next(free_threaded(), None)
    if python is None:
        print("skipped: no free-threaded Python (python3.13t or later) in PATH or pyenv")
        return 0
    threads = sorted({1, *map(int, arguments.threads.split(","))})
    if threads == [1]:
        parser.error("--threads: times are compared with one thread, so give more than that")
    rows = []
    for case in CASES if arguments.only is None else [arguments.only]:
        rows += compared(case, python, threads, arguments.runs)
    if arguments.json:
        print(json.dumps({"python": python, "rows": rows}, indent=2))
        return 0
    for row in rows:
        print(
            f"{row['case']:<8} {row['threads']:>2} threads: predicted {row['predicted']:5.2f} "
            f"times as fast as one, measured {row['measured']:5.2f} ({row['measured_s']:.3f} s), "
            f"error {row['error']:+.0%}; predicted to be limited by {row['limited_by']}"
        )
    errors = [abs(row["error"]) for row in rows if row["threads"] > 1]
    print(f"median error {statistics.median(errors):.1%}, worst {max(errors):.0%}, with {python}")
    return 0


def free_threaded() -> Iterator[str]:
    """Yield interpreters that run without a GIL."""
    for candidate in dict.fromkeys(_candidates()):
        if is_free_threaded(candidate):
            yield candidate


def is_free_threaded(python: str) -> bool:
    """Tell whether an interpreter runs without a GIL."""
    try:
        answer = subprocess.run(
            [python, "-c", PROBE], capture_output=True, timeout=20, env=FREE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def _candidates() -> Iterator[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in (*folders, *sorted(root.glob("versions/*/bin"))):
        for pattern in ("python3.*t", "python3t", "python3", "python"):
            for path in sorted(folder.glob(pattern)):
                if os.access(path, os.X_OK) and "config" not in path.name:
                    yield str(path)


def compared(case: str, python: str, threads: list[int], runs: int) -> list[dict[str, Any]]:
    """Return predicted and measured speed of a case, relative to one thread."""
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "run.clt")
        recorded = str(max(2, len(os.sched_getaffinity(0))))
        _tool("record", "-o", trace, str(PROGRAM), case, "none", recorded)
        counts = ",".join(map(str, threads))
        answer = _tool("predict", trace, "--no-gil", "--json", "--threads", counts)
    points = json.loads(answer)["as_recorded"]
    taken: dict[int, list[float]] = {count: [] for count in threads}
    for _ in range(runs):
        for count in threads:
            words = [python, str(PROGRAM), case, "none", str(count)]
            found = subprocess.run(words, check=True, capture_output=True, text=True, env=FREE)
            taken[count].append(float(found.stdout))
    medians = {count: statistics.median(times) for count, times in taken.items()}
    rows = []
    for point in points:
        count = point["threads"]
        predicted, measured = points[0]["time_s"] / point["time_s"], medians[1] / medians[count]
        rows.append(
            {
                "case": case,
                "threads": count,
                "predicted": predicted,
                "measured": measured,
                "measured_s": medians[count],
                "error": predicted / measured - 1.0,
                "limited_by": point["limiting_lock"] or point["limited_by"],
            }
        )
    return rows


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
