"""Tasks that read events wait to put them into a short asyncio queue; one task saves slowly."""

import asyncio
import json
import os
import sys
import time

FIX = "--fix" in sys.argv  # save many at a time
SCALE = float(os.environ.get("CASE_SCALE", "1"))
READERS, EVENTS = 8, 25


async def read(events, number):
    for count in range(EVENTS):
        await asyncio.sleep(0.001 * SCALE)
        await events.put((number, count))  # VICTIM


async def save(events, saved):
    while len(saved) < READERS * EVENTS:
        batch = [await events.get()]
        while FIX and not events.empty():
            batch.append(events.get_nowait())
        await asyncio.sleep(0.0045 * SCALE)  # CULPRIT
        saved += batch


async def main():
    events = asyncio.Queue(maxsize=64 if FIX else 3)  # LOCK
    saved = []
    begun = time.perf_counter()
    await asyncio.gather(save(events, saved), *(read(events, number) for number in range(READERS)))
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "saved": len(saved)}))


if __name__ == "__main__":
    asyncio.run(main())
