"""An asyncio echo server with a few polite clients."""

import asyncio
import os

SCALE = float(os.environ.get("CASE_SCALE", "1"))


async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()


async def client(address, lock, total):
    reader, writer = await asyncio.open_connection(*address)
    for number in range(40):
        writer.write(b"%d\n" % number)
        answer = int(await reader.readline())
        async with lock:
            total.append(answer)
        await asyncio.sleep(0.01 * SCALE)
    writer.close()
    await writer.wait_closed()


async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    address, lock, total = server.sockets[0].getsockname(), asyncio.Lock(), []
    await asyncio.gather(*(client(address, lock, total) for _ in range(5)))
    await asyncio.sleep(0.02)
    server.close()
    print(sum(total))


if __name__ == "__main__":
    asyncio.run(main())
