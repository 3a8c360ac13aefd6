"""Text of `perf script` about a program that is simulated: its threads spin for one lock."""

from __future__ import annotations

import random

STACKS = {
    "computes": ("kernel", "train", "worker"),
    "registers": ("kernel", "server_register", "train", "worker"),
    "goes backward": ("kernel", "server_backward", "train", "worker"),
    "waits to register": ("spin_lock", "server_register", "train", "worker"),
    "waits to go backward": ("spin_lock", "server_backward", "train", "worker"),
}


def perf_text(
    *, seconds: float = 4.0, threads: int = 4, backward_waits: bool = True, locked: bool = True
) -> str:
    """Return samples of each thread, on a core of its own, every 2 ms.

    Parameters
    ----------
    seconds
        How long.
    threads
        How many.
    backward_waits
        Threads are also seen waiting in `server_backward`; else only in `server_register`.
    locked
        There is a lock; else they work side by side.
    """
    chance = random.Random(1)
    doing = ["computes"] * threads
    left = [chance.randint(1, 12) for _ in range(threads)]
    blocks = []
    for ms in range(int(seconds * 1000)):
        if ms % 2 == 0:
            blocks += [_block(ms, thread, what) for thread, what in enumerate(doing)]
        for thread, what in enumerate(doing):
            left[thread] -= 1
            if left[thread] <= 0 and not what.startswith("waits"):
                _next(doing, left, thread, chance)
        inside = any(what in ("registers", "goes backward") for what in doing)
        for thread in chance.sample(range(threads), threads):
            if doing[thread].startswith("waits") and not (locked and inside):
                backward = doing[thread].endswith("backward")
                doing[thread] = "goes backward" if backward else "registers"
                left[thread] = chance.randint(15, 25) if backward else 1
                inside = True
        if not backward_waits:  # whoever goes backward finds the lock free
            for thread, what in enumerate(doing):
                if what == "waits to go backward":
                    doing[thread], left[thread] = "waits to register", 0
    return "".join(blocks)


def _next(doing: list[str], left: list[int], thread: int, chance: random.Random) -> None:
    if doing[thread] == "computes":
        backward = chance.random() < 0.3
        doing[thread] = "waits to go backward" if backward else "waits to register"
        return
    doing[thread], left[thread] = "computes", chance.randint(1, 12)


def _block(ms: int, thread: int, what: str) -> str:
    time = f"{100 + ms / 1000 + thread * 1e-4:.6f}"
    head = f"prog   900/{900 + thread} [{thread:03d}] {time}:    2000000 cpu-clock:u: \n"
    frames = (
        f"\t    {0x1000 + at:x} {name}+0x4 (/opt/prog)\n" for at, name in enumerate(STACKS[what])
    )
    return f"{head}{''.join(frames)}\n"
