"""A handler asks a thread pool and waits for the result without `await`: the loop stands still."""

import asyncio
import concurrent.futures
import json
import os
import sys
import time

FIX = "--fix" in sys.argv  # await the result
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def query(number):
    time.sleep(0.025 * SCALE)
    return number * number


async def handle(pool, reader, writer):
    while line := await reader.readline():
        future = pool.submit(query, int(line))
        if FIX:
            answer = await asyncio.wrap_future(future)
        else:
            answer = future.result()  # VICTIM CULPRIT
        writer.write(b"%d\n" % answer)
        await writer.drain()
    writer.close()


async def client(address, count):
    reader, writer = await asyncio.open_connection(*address)
    total = 0
    for number in range(count):
        writer.write(b"%d\n" % number)
        total += int(await reader.readline())
    writer.close()
    return total


async def main():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        server = await asyncio.start_server(lambda r, w: handle(pool, r, w), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        begun = time.perf_counter()
        totals = await asyncio.gather(*(client(address, 5) for _ in range(7)))
        wall = time.perf_counter() - begun
        server.close()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "total": sum(totals)}))


if __name__ == "__main__":
    asyncio.run(main())
