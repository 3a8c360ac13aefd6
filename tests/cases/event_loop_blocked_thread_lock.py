"""A coroutine takes a lock of threads that a worker holds for long: all tasks stop meanwhile."""

import asyncio
import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the worker holds the lock only to swap the result in
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Rates:
    def __init__(self):
        self._lock = threading.Lock()  # LOCK
        self._table = {"eur": 1.0}

    def load(self):
        time.sleep(0.045 * SCALE)  # CULPRIT
        return {"eur": time.monotonic()}

    def renew(self):
        if FIX:
            table = self.load()
            with self._lock:
                self._table = table
            return
        with self._lock:
            self._table = self.load()

    async def rate(self, name):
        with self._lock:  # VICTIM CULPRIT
            return self._table[name]


def renewer(rates, stop):
    while not stop.is_set():
        rates.renew()
        time.sleep(0.02 * SCALE)


async def visitor(rates, end, delays):
    while time.monotonic() < end:
        due = time.monotonic() + 0.003
        await asyncio.sleep(0.003)  # VICTIM
        delays.append(time.monotonic() - due)
        await rates.rate("eur")


async def main():
    rates, stop, delays = Rates(), threading.Event(), []
    thread = threading.Thread(target=renewer, args=(rates, stop))
    thread.start()
    end = time.monotonic() + 1.0 * SCALE
    await asyncio.gather(*(visitor(rates, end, delays) for _ in range(12)))
    stop.set()
    thread.join()
    late = round(sum(delays) / len(delays) * 1e3, 2)
    print(json.dumps({"fix": FIX, "visits": len(delays), "late_ms": late}))


if __name__ == "__main__":
    asyncio.run(main())
