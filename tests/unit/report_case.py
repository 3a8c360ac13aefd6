"""A made-up sweep for the tests of the page: a result and its traces, the same on every call.

A small model of the flagship: threads take turns at one lock for many short `register` holds and
few long `backward` holds. Times are those of the model, in nanoseconds.
"""

from __future__ import annotations

import heapq
import random
from typing import Any

from contention_lab.trace import Trace, TraceBuilder, WaitKind, parse

SITE = "/srv/project/autodiff/"
CORES = 2
THREADS = (1, 2, 4, 8, 16, 32)
WALLS = (0.56, 0.42, 2.36, 12.7, 9.6, 6.6)
CLIENTS = {
    "global-spinlock": WALLS,
    "global-mutex": (0.55, 0.42, 0.44, 0.50, 0.55, 0.56),
    "narrow-lock": (0.54, 0.29, 0.30, 0.32, 0.36, 0.38),
    "channel": (0.58, 0.47, 0.49, 0.55, 0.57, 0.60),
    "graph-mutex": (0.57, 0.30, 0.31, 0.33, 0.35, 0.37),
    "thread-local": (0.55, 0.29, 0.29, 0.33, 0.35, 0.40),
    "async-backend": (0.61, 0.36, 0.35, 0.38, 0.41, 0.45),
}
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "right\u202eleft‏ to",
    "nul\x00 bell\x07 escape\x1b[31m",
    "x" * 10_000,
    "🔒 emoji 👩‍💻 and $math$ \\ \"quotes' & é",
    "lone \ud83d surrogate",
)


def flagship_trace(
    threads: int = 8, steps: int = 12, *, spinning: bool = True, names: tuple[str, ...] = ()
) -> Trace:
    """A trace of `threads` threads that train `steps` steps each over one lock."""
    builder = TraceBuilder(
        meta={
            "program": "train.py",
            "python": {"version": "3.11.7", "implementation": "CPython", "gil": True},
            "machine": {
                "cores": CORES,
                "system": "Linux",
                "release": "6.1",
                "processor": "Example",
            },
            "package_version": "0.1.0",
            "start_time": "2026-11-30T06:40:00+00:00",
        }
    )
    made_at = builder.add_frame("GlobalClient.__init__", SITE + "client.py", 31)
    kind = "SpinLock" if spinning else "Mutex"
    lock = builder.add_lock(kind, name=names[0] if names else "autodiff server", site=made_at)
    quiet = builder.add_lock("Mutex", site=builder.add_frame("Pool.__init__", SITE + "pool.py", 9))
    base = [
        builder.add_frame("train_one", SITE + "training.py", 88),
        builder.add_frame("run_batch.<locals>.worker", SITE + "training.py", 120),
        builder.add_frame("Thread.run", "/usr/lib/python3.11/threading.py", 982),
        builder.add_frame("Thread._bootstrap_inner", "/usr/lib/python3.11/threading.py", 1045),
        builder.add_frame("Thread._bootstrap", "/usr/lib/python3.11/threading.py", 1002),
    ]
    title = names[1] if len(names) > 1 else "GlobalClient.register"
    register = builder.add_frame(title, SITE + "client.py", 44)
    operations = [
        builder.add_stack(
            register,
            builder.add_frame("Graph.record", SITE + "graph.py", 27),
            builder.add_frame(f"Tensor.{operation}", SITE + "tensor.py", line),
            builder.add_frame("MLP.forward", SITE + "layers.py", 63),
            *base,
        )
        for operation, line in (("matmul", 140), ("add", 152), ("relu", 171), ("matmul", 140))
    ]
    take = builder.add_frame("GlobalClient.backward", SITE + "client.py", 57)
    asks = builder.add_stack(
        take, builder.add_frame("Tensor.backward", SITE + "tensor.py", 210), *base
    )
    runs = [
        builder.add_stack(
            builder.add_frame(step, SITE + "ops.py", line),
            builder.add_frame("Server.run_tape", SITE + "server.py", 96),
            builder.add_frame("Server.backward", SITE + "server.py", 71),
            builder.add_frame("GlobalClient.backward", SITE + "client.py", 58),
            builder.add_frame("Tensor.backward", SITE + "tensor.py", 210),
            *base,
        )
        for step, line in (("MatMul.backward", 33), ("Relu.backward", 61))
    ]
    chance = random.Random(7)
    ids = range(1, threads + 1)
    cpu_ns = dict.fromkeys(ids, 0)
    moments = [(chance.randrange(200_000), thread, 0) for thread in ids]
    heapq.heapify(moments)
    free_at, holder, waiting = 0, 0, 0
    turns = steps * (len(operations) + 1)
    while moments:
        asked, thread, turn = heapq.heappop(moments)
        if turn == turns:
            continue
        place = turn % (len(operations) + 1)
        long = place == len(operations)
        got = max(asked, free_at)
        if got > asked:
            waited = got - asked
            on_core = waited * min(CORES, threads) // threads if spinning else 0
            cpu_ns[thread] += on_core
            gil = 20_000 if long else 5_000
            builder.add_wait(
                lock, thread, asked, got + gil, stack=asks if long else operations[place],
                holder=holder, holder_site=take, gil_ns=gil, waiters=waiting % threads,
                spin_ns=waited if spinning else 0, park_ns=0 if spinning else waited,
                spin_cpu_ns=on_core,
            )  # fmt: skip
            waiting += 1
        held = chance.randrange(1_500_000, 2_500_000) if long else chance.randrange(20_000, 60_000)
        stack = runs[turn % 2] if long else operations[place]
        builder.add_hold(
            lock, thread, got, got + held, site=take if long else register, stack=stack,
            waiters=1, cpu_ns=held,
        )  # fmt: skip
        free_at, holder = got + held, thread
        thought = chance.randrange(100_000, 300_000)
        cpu_ns[thread] += held + thought
        heapq.heappush(moments, (free_at + thought, thread, turn + 1))
    for thread in ids:
        builder.add_thread(f"worker-{thread - 1}", end_ns=free_at, cpu_ns=cpu_ns[thread])
    builder.add_counter(quiet, ids[0], acquires=40, hold_ns=900_000)
    builder.set_status(writer_cpu_ns=1_200_000, self_ns=90_000, bytes_written=48_000)
    return parse(builder.bytes(), f"/srv/project/run-{threads}.clt")


def chained_trace() -> Trace:
    """`front` waits for the lock of `middle`, which waits for that of `back`; `back` sleeps."""
    builder = TraceBuilder()
    outer, inner = builder.add_lock(name="outer"), builder.add_lock(name="inner")
    front, middle, back = (builder.add_thread(name) for name in ("front", "middle", "back"))
    at = {
        name: builder.add_stack(builder.add_frame(name, "/srv/app.py", line))
        for line, name in enumerate(("ask", "nest", "work"), 1)
    }
    site = builder.add_frame("work", "/srv/app.py", 3)
    builder.add_hold(inner, back, 1_000, 90_000, site=site, stack=at["work"], waiters=1)
    builder.add_hold(outer, middle, 5_000, 95_000, stack=at["nest"], waiters=1)
    builder.add_wait(inner, middle, 6_000, 90_500, stack=at["nest"], holder=back)
    builder.add_wait(outer, front, 10_000, 95_500, stack=at["ask"], holder=middle)
    builder.add_wait(outer, back, 200_000, 300_000, stack=at["ask"], kind=WaitKind.COORDINATION)
    return parse(builder.bytes())


def sweep_result(variants: tuple[str, ...] = ("global-spinlock",)) -> dict[str, Any]:
    """A `result.json`, schema 1, of these variants of the flagship."""
    return {
        "schema": 1,
        "scenario": {
            "name": "autodiff-global-spinlock",
            "title": "Autodiff server behind one spinlock",
            "story": "Many small models are trained in parallel, one per thread.",
            "workload": "autodiff",
            "parameters": {"trainings": 32, "steps": 20, "layers": [128, 256, 256, 10], "lr": 0.1},
            "threads": list(THREADS),
            "repeats": 3,
            "expect": {},
            "unit": "trainings",
        },
        "machine": {
            "cores": CORES, "processor": "Example CPU", "system": "Linux", "release": "6.1.0",
            "clock": "tsc", "blas": [{"library": "openblas", "version": "0.3.27", "threads": 1}],
            "load_before": {"load1": 0.1, "cpu_some_avg10": 0.0, "steal_share": 0.0},
            "load_during": {"load1": 6.2, "cpu_some_avg10": 40.0, "steal_share": 0.01},
        },
        "python": {"version": "3.11.7", "implementation": "CPython", "gil": True},
        "package_version": "0.1.0",
        "started": "2026-11-30T06:40:00+00:00",
        "wall_s": 63.1,
        "complete": True,
        "missing": [],
        "variants": list(variants),
        "points": [
            _point(variant, threads, wall)
            for variant in variants
            for threads, wall in zip(THREADS, CLIENTS.get(variant, WALLS), strict=True)
        ],
        "fits": [
            {
                "variant": variant, "model": "usl", "alpha": 0.63, "beta": 0.19, "gamma": 1.8,
                "parallel_s": 0.2, "serial_s": 0.35, "per_thread_s": 0.31, "best_threads": 1,
                "mean_error": 0.44, "intervals": {}, "notes": ["A cliff is no rational function."],
            }
            for variant in variants
        ],
        "bounds": [
            {
                "variant": variant, "serial_hold_s": 0.37,
                "text": "The lock is held 370 ms in the 1-thread run.",
            }
            for variant in variants
        ],
        "locks": [],
        "verdict": {
            "kind": "spin-collapse",
            "summary": "One spinlock serialises the training.",
            "lines": [
                "Threads in GlobalClient.register spin for “autodiff server” while "
                "GlobalClient.backward holds it: the batch takes 0.56 s with 1 thread and 12.7 s "
                "with 8.",
                "With more threads than the 2 cores, spinners take the core from the holder. "
                "Parking would remove that; only a narrower lock lets the work scale.",
            ],
        },
    }  # fmt: skip


def sweep_traces(
    variants: tuple[str, ...] = ("global-spinlock",), threads: tuple[int, ...] = (1, 2, 8)
) -> dict[tuple[str, int], Trace]:
    """Traces of some points of `sweep_result`."""
    return {
        (variant, n): flagship_trace(n, spinning="spin" in variant)
        for variant in variants
        for n in threads
    }


def _point(variant: str, threads: int, wall: float) -> dict[str, Any]:
    runs = [round(wall * factor, 4) for factor in (1.0, 0.95 + 0.001 * threads, 1.07)]
    run, everything = min(1.1, wall * threads), wall * threads * 1.02
    lost = everything - run
    spin = lost * (0.9 if "spin" in variant else 0.02)
    return {
        "variant": variant,
        "threads": threads,
        "work": 32,
        "wall_s": {
            "median": sorted(runs)[1], "low": min(runs), "high": max(runs), "runs": runs,
        },
        "traced_wall_s": round(wall * 1.02, 4),
        "cpu_s": round(run + spin / threads * min(threads, CORES), 3),
        "thread_s": {
            "run": run, "spin": spin, "park": lost * 0.97 - spin * 1.05 if spin < lost / 2 else 0.0,
            "gil": lost * 0.03, "coordination": 0.0,
        },
        "hold_s": 0.37 + 0.01 * threads,
        "losses": ["0x1.0p-3"],
        "voluntary_switches": 100 * threads,
        "involuntary_switches": 90 * threads,
        "trace": f"traces/{variant}-{threads}.clt",
    }  # fmt: skip
