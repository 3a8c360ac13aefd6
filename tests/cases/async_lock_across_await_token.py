"""Every request takes the token's lock and awaits the reply of the token service under it."""

import asyncio
import json
import os
import sys
import time

FIX = "--fix" in sys.argv  # renewed in time, and then only if it is too old
SCALE = float(os.environ.get("CASE_SCALE", "1"))
LIFE_S = 60.0


async def token_service(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.018 * SCALE)
        writer.write(b"token for " + line)
    writer.close()


class Session:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.token, self.until = b"", 0.0
        self.token_lock = asyncio.Lock()  # LOCK

    async def renew(self):
        self.writer.write(b"me\n")
        await self.writer.drain()
        self.token = await self.reader.readline()  # CULPRIT
        self.until = time.monotonic() + LIFE_S

    async def request(self, path):
        if not FIX or time.monotonic() > self.until:
            async with self.token_lock:  # VICTIM
                if not FIX or time.monotonic() > self.until:
                    await self.renew()
        await asyncio.sleep(0.004 * SCALE)
        return path, self.token


async def visitor(session, name):
    return [await session.request(f"/{name}/{n}") for n in range(6)]


async def main():
    server = await asyncio.start_server(token_service, "127.0.0.1", 0)
    session = Session(*await asyncio.open_connection(*server.sockets[0].getsockname()))
    if FIX:
        await session.renew()
    begun = time.perf_counter()
    pages = await asyncio.gather(*(visitor(session, name) for name in range(8)))
    wall = time.perf_counter() - begun
    session.writer.close()
    await session.writer.wait_closed()
    await asyncio.sleep(0.01)
    server.close()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "pages": sum(map(len, pages))}))


if __name__ == "__main__":
    asyncio.run(main())
