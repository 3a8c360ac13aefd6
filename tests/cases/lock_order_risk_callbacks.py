"""A bus calls its listeners under its lock; a component publishes under its own. Both, in time."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # listeners are called without the lock
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Bus:
    def __init__(self):
        self._registry = threading.RLock()  # LOCK
        self._listeners = []

    def subscribe(self, listener):
        with self._registry:
            self._listeners.append(listener)

    def publish(self, event):
        with self._registry:  # VICTIM
            listeners = list(self._listeners)
            if not FIX:
                for listener in listeners:
                    listener(event)
        if FIX:
            for listener in listeners:
                listener(event)


class Component:
    def __init__(self, bus):
        self._state = threading.RLock()  # LOCK 2
        self._seen, self._bus = 0, bus
        bus.subscribe(self.on_event)

    def on_event(self, event):
        with self._state:  # CULPRIT
            self._seen += event

    def rename(self):
        with self._state:
            self._bus.publish(1)


def main():
    bus = Bus()
    components = [Component(bus) for _ in range(2)]
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for number in range(40):
            first.submit(bus.publish, number).result()
            second.submit(components[number % 2].rename).result()
            time.sleep(0.01 * SCALE)
    print(json.dumps({"fix": FIX, "seen": [c._seen for c in components]}))


if __name__ == "__main__":
    main()
