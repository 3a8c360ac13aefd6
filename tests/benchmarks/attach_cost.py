"""What `attach` costs the program that it samples.

One program with two busy threads and six that sleep runs all the time. Windows in which it is
sampled at 100 a second and windows in which it is not alternate, in pairs of random order; the
program itself says how much it has done and how much CPU time that took. Printed are the medians of
the pairs' ratios, with quartiles: work for each second of CPU time, and work for each second.

The second includes what the sampler takes from a machine with few cores. Usage:
python tests/benchmarks/attach_cost.py [--pairs N] [--seconds S] [--native]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from statistics import median, quantiles

from contention_lab.sampling.attachment import Options, attach

PROGRAM = """
import sys, threading, time
done = [0, 0]
def work(which):
    while True:
        sum(range(2000)); done[which] += 1
for i in range(2): threading.Thread(target=work, args=(i,), daemon=True).start()
for i in range(6): threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
for _ in sys.stdin: print(sum(done), time.process_time(), time.monotonic(), flush=True)
"""


def main() -> None:
    """Measure and print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--pairs", type=int, default=15)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--native", action="store_true")
    given = options.parse_args()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        rows = [
            pair(program, given.seconds, Options(100, given.seconds, given.native))
            for _ in range(given.pairs)
        ]
    finally:
        program.kill()
        program.wait()
    print(f"attach at 100 samples a second, {given.pairs} pairs of {given.seconds:g} s")
    print(f"{'':34}{'median':>9}{'quartiles':>20}")
    for name, ratios in zip(
        ("work per CPU second", "work per second"), zip(*rows, strict=True), strict=True
    ):
        low, _, high = quantiles(ratios, n=4)
        spread = f"{low - 1:+.1%} to {high - 1:+.1%}"
        print(f"{name + ', sampled / not':34}{median(ratios) - 1:>+9.1%}{spread:>20}")


def pair(program: subprocess.Popen[str], seconds: float, options: Options) -> tuple[float, float]:
    """Return work per CPU second, and per second, sampled against not, of two windows."""
    found = {}
    for sampled in random.sample((True, False), 2):
        before = progress(program)
        if sampled:
            attach(program.pid, options)
        else:
            time.sleep(seconds)
        after = progress(program)
        work, cpu_s, wall_s = (b - a for a, b in zip(before, after, strict=True))
        found[sampled] = work / cpu_s, work / wall_s
    return found[True][0] / found[False][0], found[True][1] / found[False][1]


def progress(program: subprocess.Popen[str]) -> tuple[float, float, float]:
    """Return what the program has done, the CPU time it took, and the time."""
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write("\n")
    program.stdin.flush()
    done, cpu_s, now_s = map(float, program.stdout.readline().split())
    return done, cpu_s, now_s


if __name__ == "__main__":
    main()
