"""What `predict --no-gil` says against a free-threaded Python: does the program scale so?

Usage: python tests/benchmarks/no_gil.py [--runs 5] [--threads 1,2,4,8] [--only CASE] [--json]
           [--python PROGRAM]

Each case of `programs/fixable.py` is recorded with this interpreter, at as many threads as there
are cores, and predicted with and without the GIL. Then it runs, without recording, on this
interpreter and on a free-threaded one by turns, and thread counts by turns; the median counts. The
runs with the GIL are the control: where they are missed as well, the machine was busy, or the model
of the locks is wrong, and not that of the missing GIL. Should this interpreter be free-threaded
itself, it is asked to run with the GIL (`PYTHON_GIL=1`). Free-threaded builds run one thread slower
or faster than others, which no trace can tell: so times are compared relative to one thread, on
both sides; the measured seconds are shown, too. An interpreter is looked for in PATH and pyenv: one
that has no GIL when it is asked to run without (`PYTHON_GIL=0`, whatever the environment says).
Where there is none, it says so and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM: Final = Path(__file__).parent / "programs" / "fixable.py"
CASES: Final = ("native", "python", "sleep", "mixed", "short")
PROBE: Final = "import sys; print('gil', getattr(sys, '_is_gil_enabled', lambda: True)())"
FREE: Final = {**os.environ, "PYTHON_GIL": "0"}
"""Environment of free-threaded runs: no extension module turns the GIL on again. An interpreter
that cannot do without a GIL refuses to start."""
WITH_GIL: Final = {**os.environ, "PYTHON_GIL": "1"}
"""Environment of all that has the GIL; interpreters before 3.13 do not look at it."""


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
        gil = "GIL" if row["gil"] else "no GIL"
        print(
            f"{row['case']:<7} {gil:>6}, {row['threads']:>2} threads: "
            f"predicted {row['predicted']:5.2f} times as fast as one, "
            f"measured {row['measured']:5.2f} ({row['measured_s']:.3f} s), "
            f"error {row['error']:+.0%}; predicted to be limited by {row['limited_by']}"
        )
    for gil, used in ((True, f"the control, {sys.executable}"), (False, python)):
        errors = [abs(row["error"]) for row in rows if row["threads"] > 1 and row["gil"] == gil]
        print(f"median error {statistics.median(errors):.1%}, worst {max(errors):.0%}, with {used}")
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
            [python, "-c", PROBE], capture_output=True, timeout=20, env=FREE, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.strip() == "gil False"


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
        words = ["predict", trace, "--json", "--threads", ",".join(map(str, threads))]
        predicted = {gil: _tool(*words, *([] if gil else ["--no-gil"])) for gil in (True, False)}
    taken: dict[tuple[bool, int], list[float]] = defaultdict(list)
    for _ in range(runs):
        for count in threads:
            taken[True, count].append(batch_s(sys.executable, case, count, WITH_GIL))
            taken[False, count].append(batch_s(python, case, count, FREE))
    medians = {key: statistics.median(times) for key, times in taken.items()}
    rows = []
    for gil, answer in predicted.items():
        points = json.loads(answer)["as_recorded"]
        for point in points:
            count = point["threads"]
            faster = points[0]["time_s"] / point["time_s"]
            measured = medians[gil, 1] / medians[gil, count]
            rows.append(
                {
                    "case": case,
                    "gil": gil,
                    "threads": count,
                    "predicted": faster,
                    "measured": measured,
                    "measured_s": medians[gil, count],
                    "error": faster / measured - 1.0,
                    "limited_by": point["limiting_lock"] or point["limited_by"],
                }
            )
    return rows


def batch_s(python: str, case: str, threads: int, environment: dict[str, str]) -> float:
    """Run a case once on an interpreter; return its batch time."""
    return float(_output([python, str(PROGRAM), case, "none", str(threads)], environment))


def _tool(*words: str) -> str:
    return _output([sys.executable, "-m", "contention_lab", *words], WITH_GIL)


def _output(words: list[str], environment: dict[str, str]) -> str:
    answer = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["it said nothing"])[-1]
        sys.exit(f"no_gil.py: {shlex.join(words)} ended with {answer.returncode}: {last}")
    return answer.stdout


if __name__ == "__main__":
    sys.exit(main())
