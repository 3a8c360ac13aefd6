"""A service loop: four workers take requests from a queue, answer them and log a lot to a file."""

import json
import logging
import queue
import tempfile
import threading
import time
from pathlib import Path

WORKERS = 4
REQUESTS = 25_000

log = logging.getLogger("service")
access_log = logging.getLogger("service.access")


def answer(text: str) -> str:
    """Parse a request, do its work, and log what happened."""
    request = json.loads(text)
    log.debug("parsed request %s", request["id"])
    items = sorted(request["items"], key=lambda item: item["price"])
    total = sum(item["price"] * item["count"] for item in items)
    log.info("request %d of %s: %d items", request["id"], request["user"], len(items))
    if total > 900:
        log.warning("request %d: a large order, %.2f", request["id"], total)
    reply = json.dumps({"id": request["id"], "total": total, "names": [i["name"] for i in items]})
    access_log.info("%s %s 200 %d", request["user"], request["id"], len(reply))
    return reply


def serve(inbox: "queue.Queue[str | None]", sizes: list[int]) -> None:
    """Answer requests until there are no more."""
    while (text := inbox.get()) is not None:
        sizes.append(len(answer(text)))


def requests() -> list[str]:
    """Make the requests, always the same."""
    return [
        json.dumps(
            {
                "id": number,
                "user": f"user-{number % 97}",
                "items": [
                    {
                        "name": f"item-{(number + i) % 50}",
                        "price": (number * i) % 31,
                        "count": i,
                    }
                    for i in range(1, 12)
                ],
            }
        )
        for number in range(REQUESTS)
    ]


def main() -> None:
    """Run it and print how long it took: wall and CPU seconds."""
    texts = requests()
    with tempfile.TemporaryDirectory() as folder:
        logging.basicConfig(
            filename=Path(folder) / "service.log",
            level=logging.INFO,
            format="%(asctime)s %(levelname)s %(name)s [%(threadName)s] %(message)s",
        )
        wall, cpu = time.perf_counter(), time.process_time()
        inbox: queue.Queue[str | None] = queue.Queue(100)
        sizes: list[int] = []
        workers = [threading.Thread(target=serve, args=(inbox, sizes)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for text in (*texts, *[None] * WORKERS):
            inbox.put(text)
        for worker in workers:
            worker.join()
        assert len(sizes) == REQUESTS
        print(time.perf_counter() - wall, time.process_time() - cpu)
        logging.shutdown()


if __name__ == "__main__":
    main()
