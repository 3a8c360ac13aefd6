"""Tasks that share an asyncio queue with room, and a semaphore with permits to spare."""

import asyncio
import os

SCALE = float(os.environ.get("CASE_SCALE", "1"))


async def worker(pages, permits, sizes):
    while True:
        page = await pages.get()
        async with permits:
            await asyncio.sleep(0.009 * SCALE)
            sizes.append(page)
        pages.task_done()


async def main():
    pages, permits, sizes = asyncio.Queue(), asyncio.Semaphore(8), []
    tasks = [asyncio.create_task(worker(pages, permits, sizes)) for _ in range(4)]
    for page in range(240):
        pages.put_nowait(page)
        await asyncio.sleep(0.003 * SCALE)
    await pages.join()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(len(sizes))


if __name__ == "__main__":
    asyncio.run(main())
