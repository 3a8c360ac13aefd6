"""What `contention-lab record` adds to starting Python, and to forking.

Runs an empty program, and one that imports asyncio, both ways in turn and prints the medians;
nothing is asserted, since what a start costs depends on the machine and on what else it does.

    python tests/benchmarks/record_start.py --rounds 30
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FORKS = """
import os, time
start = time.perf_counter()
for _ in range(200):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print((time.perf_counter() - start) / 200)
"""

RECORD = ("-m", "contention_lab", "record", "-q", "-o", "start.clt")
PROGRAMS = {"an empty program": "", "a program with asyncio": "import asyncio\n"}
WAYS: dict[str, tuple[str, ...]] = {
    "python": (),
    "record": RECORD,
    "record --level trace": (*RECORD, "--level", "trace"),
    "record --existing --subprocesses": (*RECORD, "--existing", "--subprocesses"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20, help="starts of each kind")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "forks.py").write_text(FORKS)
        for program, text in PROGRAMS.items():
            (folder / "program.py").write_text(text)
            report_starts(program, folder, rounds)
        report_forks(folder)


def report_starts(program: str, folder: Path, rounds: int) -> None:
    """Print the median time of each way to start `program.py`."""
    measured: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way, command in WAYS.items():
            costs = timed((*command, "program.py"), folder)
            if number > 0:  # the first writes byte code
                measured[way].append(costs)
    print(f"{f'start of {program}':<34}{'median':>10}{'more':>10}{'CPU':>10}{'more':>10}")
    plain = [statistics.median(costs) for costs in zip(*measured["python"], strict=True)]
    for way, ways in measured.items():
        median = [statistics.median(costs) for costs in zip(*ways, strict=True)]
        cells = [
            f"{cost * 1e3:>7.1f} ms{(cost - less) * 1e3:>7.1f} ms"
            for cost, less in zip(median, plain, strict=True)
        ]
        print(f"{way:<34}{''.join(cells)}")


def report_forks(folder: Path) -> None:
    """Print what a fork costs a program, with and without a recording."""
    costs: dict[str, list[float]] = {"plain": [], "recorded": []}
    for _ in range(5):
        for way, before in (("plain", ()), ("recorded", RECORD)):
            done = run((*before, "forks.py"), folder, stdout=subprocess.PIPE)
            costs[way].append(float(done.stdout))
    for way, measured in costs.items():
        print(f"fork and wait, {way:<19}{statistics.median(measured) * 1e3:>7.2f} ms")


def timed(command: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Return the seconds from starting a process to its end, and those it was on a core."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    run(command, folder)
    elapsed = time.perf_counter() - start
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime


def run(
    command: tuple[str, ...], folder: Path, stdout: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run Python; it must succeed."""
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    # The first start writes byte code, or each would compile what has been edited.
    given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        check=True,
        stdout=stdout,
        env={**given, "PYTHONPATH": paths},
    )


if __name__ == "__main__":
    main()
