"""An asyncio crawler allows two downloads at a time, for fear of a server that can take many."""

import asyncio
import json
import os
import sys
import time

FIX = "--fix" in sys.argv  # all of them
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Crawler:
    def __init__(self, limit):
        self.slots = asyncio.Semaphore(limit)  # LOCK
        self.pages = {}

    async def download(self, url):
        async with self.slots:  # VICTIM
            await asyncio.sleep(0.03 * SCALE)  # CULPRIT
            self.pages[url] = len(url)


async def main():
    crawler = Crawler(60 if FIX else 2)
    begun = time.perf_counter()
    await asyncio.gather(*(crawler.download(f"page {n}") for n in range(60)))
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "pages": len(crawler.pages)}))


if __name__ == "__main__":
    asyncio.run(main())
