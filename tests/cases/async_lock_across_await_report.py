"""Tasks hand work to threads and await it with an asyncio lock held: one report at a time."""

import asyncio
import hashlib
import json
import os
import sys
import time

FIX = "--fix" in sys.argv  # the lock covers the file only
SCALE = float(os.environ.get("CASE_SCALE", "1"))
written = []


def render(number):
    time.sleep(0.015 * SCALE)  # the data base
    return hashlib.pbkdf2_hmac("sha256", b"report", b"%d" % number, int(4000 * SCALE))


async def report(lock, number):
    if FIX:
        page = await asyncio.to_thread(render, number)
        async with lock:
            written.append(page)
        return
    await lock.acquire()  # VICTIM
    try:
        page = await asyncio.to_thread(render, number)  # CULPRIT
        written.append(page)
    finally:
        lock.release()


async def main():
    lock = asyncio.Lock()  # LOCK
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(36):
            group.create_task(report(lock, number))
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "reports": len(written)}))


if __name__ == "__main__":
    asyncio.run(main())
