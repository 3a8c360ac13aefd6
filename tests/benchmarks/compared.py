"""What other tools say of a lock that somebody holds too long, beside ours, on one program.

Three threads look up prices while one holds the lock across a request. The program itself adds up
what its look-ups waited: that is the truth. Of each tool's own file the table says how much of it
is shown where the look-ups wait, whether it stands there as waiting for a lock, whether the lock is
told (its name, or the line that made it), how much is charged to the code that held it, and the CPU
time of the program with the tool over without (its own figure, several runs, interleaved).

Run: `python tests/benchmarks/compared.py [--rounds N]`. What is not installed is not measured:
`pip install py-spy viztracer yappi ddtrace zstandard`; ddtrace's file is read by `go tool pprof`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = """
import sys, threading, time

class Catalog:
    def __init__(self):
        self._lock = threading.Lock()
        self.prices = {}

    def refresh(self):
        with self._lock:
            self.fetch()

    def fetch(self):
        time.sleep(0.04)

    def lookup(self, key):
        asked = time.perf_counter()
        with self._lock:
            waited = time.perf_counter() - asked
            self.prices.get(key)
        return waited

def main():
    catalog = Catalog()
    end = time.perf_counter() + float(sys.argv[1])
    waited = []

    def read():
        total = 0.0
        while time.perf_counter() < end:
            total += catalog.lookup("a")
            sum(range(20_000))
        waited.append(total)

    def renew():
        while time.perf_counter() < end:
            catalog.refresh()
            time.sleep(0.02)

    threads = [threading.Thread(target=read) for _ in range(3)] + [threading.Thread(target=renew)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("truth", sum(waited), time.process_time())

main()
"""
LOCK = (
    "Catalog._lock",
    f"shop.py:{PROGRAM.splitlines().index('        self._lock = threading.Lock()') + 1}",
)
RATE = 100


@dataclass(frozen=True)
class Said:
    """What a tool's file says; seconds, and whether the waiting is told from running."""

    shown: float
    as_waiting: bool
    lock_told: bool
    charged: float


@dataclass(frozen=True)
class Tool:
    """How a tool is run, and how its file is read."""

    name: str
    needs: str
    command: list[str]
    read: Callable[[Path], Said]


def told(text: str) -> bool:
    return any(name in text for name in LOCK)


def read_py_spy(folder: Path) -> Said:
    text = (folder / "out").read_text(encoding="utf-8")
    samples = 0
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack.rpartition(";")[2].startswith("Catalog.lookup"):
            samples += int(count)
    return Said(samples / RATE, False, told(text), 0.0)


def read_viztracer(folder: Path) -> Said:
    text = (folder / "out.json").read_text(encoding="utf-8")
    events = json.loads(text)["traceEvents"]
    inside = sum(e["dur"] for e in events if e["name"].startswith("Catalog.lookup"))
    return Said(inside / 1e6, False, told(text), 0.0)


def read_yappi(folder: Path) -> Said:
    functions = pstats.Stats(str(folder / "out")).stats  # type: ignore[attr-defined]
    inside = sum(row[2] for key, row in functions.items() if "lookup" in key[2])
    return Said(inside, False, told(" ".join(map(str, functions))), 0.0)


def read_ddtrace(folder: Path) -> Said:
    import zstandard

    (file,) = folder.glob("out.*.pprof")
    plain = folder / "plain.pprof"
    plain.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes()))
    raw = ["go", "tool", "pprof", "-raw", "-sample_index=lock-acquire-wait", str(plain)]
    lines = subprocess.run(raw, capture_output=True, text=True, check=True).stdout.splitlines()
    start = lines.index("Samples:") + 1
    column = lines[start].split().index("lock-acquire-wait/nanoseconds")
    columns = len(lines[start].split())
    text = "\n".join(lines)
    waited = 0.0
    for line in lines[start + 1 : lines.index("Locations")]:
        values = line.split(":")[0].split()
        if len(values) == columns and values[column].isdigit():
            waited += int(values[column]) / 1e9
    return Said(waited, True, told(text), 0.0)


def read_ours(folder: Path) -> Said:
    command = [sys.executable, "-m", "contention_lab", "diagnose", str(folder / "out"), "--json"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown = charged = 0.0
    for finding in json.loads(text)["findings"][:1]:
        victims = [v for v in finding["victims"] if v["site"]["function"] == "Catalog.lookup"]
        shown = sum(victim["thread_s"] for victim in victims)
        charged = sum(culprit["thread_s"] for culprit in finding["culprits"])
    return Said(shown, True, told(text), charged)


def tools(folder: Path) -> list[Tool]:
    python, out = sys.executable, str(folder / "out")
    spy = ["py-spy", "record", "-t", "-r", str(RATE), "-f", "raw", "-o", out]
    return [
        Tool("py-spy", "py-spy", [*spy, "--", python], read_py_spy),
        Tool("py-spy --idle", "py-spy", [*spy, "--idle", "--", python], read_py_spy),
        Tool(
            "viztracer", "viztracer", ["viztracer", "--quiet", "-o", f"{out}.json"], read_viztracer
        ),
        Tool("yappi, wall", "yappi", ["yappi", "-c", "wall", "-f", "pstat", "-o", out], read_yappi),
        Tool("ddtrace, 1 %", "ddtrace-run", ["ddtrace-run", python], read_ddtrace),
        Tool(
            "contention-lab",
            python,
            [python, "-m", "contention_lab", "record", "-o", out],
            read_ours,
        ),
    ]


def run(command: list[str], seconds: float, folder: Path) -> tuple[float, float]:
    """Seconds that the look-ups waited and CPU seconds of the program, by the program itself."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "DD_PROFILING_ENABLED": "1",
        "DD_PROFILING_OUTPUT_PPROF": str(folder / "out"),
        "DD_TRACE_ENABLED": "0",
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    }
    done = subprocess.run(
        [*command, str(folder.parent / "shop.py"), str(seconds)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("truth"):
            return float(line.split()[1]), float(line.split()[2])
    raise RuntimeError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])


def present(tool: Tool) -> bool:
    here = shutil.which(
        tool.needs, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if tool.needs == "ddtrace-run":
        return bool(here and shutil.which("go") and importlib.util.find_spec("zstandard"))
    return bool(here)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "shop.py").write_text(PROGRAM, encoding="utf-8")
        folder = Path(scratch) / "tool"
        measured: dict[str, list[tuple[float, float, Said]]] = {}
        for _ in range(arguments.rounds):
            for tool in tools(folder):
                if not present(tool):
                    continue
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                _, bare = run([sys.executable], arguments.seconds, folder)
                truth, busy = run(tool.command, arguments.seconds, folder)
                measured.setdefault(tool.name, []).append((truth, busy / bare, tool.read(folder)))
    print(
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, "
        f"medians of {arguments.rounds} rounds"
    )
    print(
        "| tool | of the waiting, shown where they wait | as waiting | lock told "
        "| charged to the code that holds | CPU time |"
    )
    print("|---|---|---|---|---|---|")
    for tool in tools(folder):
        rows = measured.get(tool.name)
        if not rows:
            print(f"| {tool.name} | not installed | | | | |")
            continue
        shown = statistics.median(said.shown / truth for truth, _, said in rows)
        charged = statistics.median(said.charged / truth for truth, _, said in rows)
        ratios = sorted(ratio for _, ratio, _ in rows)
        print(
            f"| {tool.name} | {shown:.0%} | {'yes' if rows[0][2].as_waiting else 'no'} "
            f"| {'yes' if all(said.lock_told for _, _, said in rows) else 'no'} "
            f"| {charged:.0%} "
            f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )


if __name__ == "__main__":
    main()
