"""An aiohttp crawler on loopback: tasks share a semaphore, a lock and a queue of pages."""

import asyncio
import re
import time

import aiohttp
from aiohttp import web

PAGES = 8_000
CRAWLERS = 20

_LINK = re.compile(r'href="/page/(\d+)"')


async def page(request: web.Request) -> web.Response:
    """Serve one page with links to others."""
    number = int(request.match_info["number"])
    links = "".join(
        f'<li><a href="/page/{(number * 3 + i) % PAGES}">page {i}</a></li>' for i in range(1, 12)
    )
    text = f"<html><body><h1>{number}</h1><p>{'text ' * 300}</p><ul>{links}</ul></body></html>"
    return web.Response(text=text, content_type="text/html")


class Crawl:
    """What the crawlers share."""

    def __init__(self, base: str, session: aiohttp.ClientSession) -> None:
        self.base, self.session = base, session
        self.queue: asyncio.Queue[int] = asyncio.Queue()
        self.limit = asyncio.Semaphore(10)
        self.lock = asyncio.Lock()
        self.seen = {1}
        self.words = 0
        self.queue.put_nowait(1)

    async def crawl(self) -> None:
        """Fetch pages and queue those they link to, until cancelled."""
        while True:
            number = await self.queue.get()
            async with self.limit, self.session.get(f"{self.base}/page/{number}") as response:
                text = await response.text()
            links = [int(found) for found in _LINK.findall(text)]
            async with self.lock:
                self.words += len(text.split())
                fresh = [link for link in links if link not in self.seen]
                self.seen.update(fresh)
            for link in dict.fromkeys(fresh):
                await self.queue.put(link)
            self.queue.task_done()


async def run() -> None:
    """Serve and crawl in one loop."""
    application = web.Application()
    application.router.add_get("/page/{number}", page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession() as session:
        wall, cpu = time.perf_counter(), time.process_time()
        crawl = Crawl(base, session)
        crawlers = [asyncio.create_task(crawl.crawl()) for _ in range(CRAWLERS)]
        await crawl.queue.join()
        for crawler in crawlers:
            crawler.cancel()
        await asyncio.gather(*crawlers, return_exceptions=True)
        assert len(crawl.seen) > 0.9 * PAGES, len(crawl.seen)
        print(time.perf_counter() - wall, time.process_time() - cpu)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(run())
