"""A pool made of threads and a queue; its tasks ask for parts and wait for their events."""

import json
import os
import queue
import sys
import threading
import time

FIX = "--fix" in sys.argv  # parts have hands of their own
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Order:
    def __init__(self):
        self.ready = threading.Event()
        self.value = None

    def fulfil(self, value):
        self.value = value
        self.ready.set()

    def collect(self, patience_s):
        self.ready.wait(patience_s)  # VICTIM CULPRIT
        return self.value


class Workshop:
    def __init__(self, hands):
        self.orders = queue.Queue()
        for _ in range(hands):
            threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            work, argument, order = self.orders.get()
            order.fulfil(work(argument))

    def order(self, work, argument):
        order = Order()
        self.orders.put((work, argument, order))
        return order


def main():
    tables = Workshop(4)
    legs = Workshop(2) if FIX else tables

    def leg(number):
        time.sleep(0.002 * SCALE)
        return number

    def table(number):
        time.sleep(0.006 * SCALE)
        return legs.order(leg, number).collect(0.2 * SCALE)

    begun, made = time.perf_counter(), 0
    for _ in range(4):
        orders = [tables.order(table, number) for number in range(6)]
        made += sum(order.collect(5.0) is not None for order in orders)
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "made": made}))


if __name__ == "__main__":
    main()
