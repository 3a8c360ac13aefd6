"""How fast the simulator is: lock events (acquires and releases) per second of CPU time.

Usage: python tests/benchmarks/simulator_speed.py [--threads N,N,...] [--seconds S] [--json]

Every policy is simulated with holds of 200 ns and thinks of 1000 ns (drawn, so that nothing
repeats) on 32 cores, and on 2 for the cost of preemption. CPU time of this thread, so that other
programs disturb little; the best of three, since they disturb nevertheless. Goal: two million.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass

from contention_lab.simulate.engine import NATIVE, simulate
from contention_lab.simulate.machine import Machine
from contention_lab.simulate.policies import POLICIES
from contention_lab.simulate.textbook import ClosedSystem

GOAL_PER_S = 2e6
REPEATS = 3
FIRST_EVENTS = 100_000


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of simulating one policy."""

    kind: str
    cores: int
    threads: int
    lock_events_per_s: float
    events_per_s: float


def measured(kind: str, cores: int, threads: int, seconds: float) -> Speed:
    """Simulate about `seconds` of CPU time, three times."""
    policy = POLICIES[kind]
    machine = Machine(cores)
    system = ClosedSystem(policy, policy.defaults, machine, 200.0, 1000.0, 0.5, 0.5)
    program = system.program(threads)
    started = time.thread_time()
    first = simulate(program.tables(machine, end_ns=1e15, events_limit=FIRST_EVENTS))
    events = int(first.events * seconds / max(time.thread_time() - started, 1e-6))
    tables = program.tables(machine, end_ns=1e15, events_limit=max(events, FIRST_EVENTS))
    best = Speed(kind, cores, threads, 0.0, 0.0)
    for _ in range(REPEATS):
        started = time.thread_time()
        found = simulate(tables)
        spent = time.thread_time() - started
        lock_events = 2.0 * float(found.locks["acquires"].sum())
        if found.events / spent > best.events_per_s:
            best = Speed(kind, cores, threads, lock_events / spent, found.events / spent)
    return best


def main(arguments: list[str]) -> int:
    """Print a table, or JSON; exit status 1 if some policy misses the goal."""
    parser = argparse.ArgumentParser(description="Measure the simulator's speed.")
    parser.add_argument("--threads", default="4,32", help="thread counts")
    parser.add_argument("--seconds", type=float, default=0.05, help="CPU time of one run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if not NATIVE:
        print("the extension was not built: this would measure the reference", file=sys.stderr)
        return 1
    counts = [int(count) for count in options.threads.split(",")]
    found = [
        measured(kind, cores, threads, options.seconds)
        for kind in POLICIES
        for cores in (32, 2)
        for threads in counts
    ]
    if options.json:
        rows = [{name: getattr(row, name) for name in Speed.__slots__} for row in found]
        print(json.dumps({"goal_per_s": GOAL_PER_S, "speeds": rows}, indent=2))
    else:
        print(f"{'policy':<14} {'cores':>5} {'threads':>7} {'lock events/s':>13} {'events/s':>9}")
        for row in found:
            print(
                f"{row.kind:<14} {row.cores:>5} {row.threads:>7} "
                f"{row.lock_events_per_s / 1e6:>11.1f} M {row.events_per_s / 1e6:>7.1f} M"
            )
    slowest = min(row.lock_events_per_s for row in found)
    print(f"slowest: {slowest / 1e6:.1f} M lock events a second", file=sys.stderr)
    return 0 if slowest >= GOAL_PER_S else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
