"""Each ticket wakes all forty clerks; one serves it, thirty-nine go back to sleep."""

import json
import os
import queue
import sys
import threading
import time

FIX = "--fix" in sys.argv  # wake one
SCALE = float(os.environ.get("CASE_SCALE", "1"))
CLERKS = 40


class Office:
    def __init__(self):
        self.changed = threading.Condition()  # LOCK
        self.tickets, self.open, self.useless = [], True, 0

    def submit(self, ticket):
        with self.changed:
            self.tickets.append(ticket)
            if FIX:
                self.changed.notify()
            else:
                self.changed.notify_all()  # CULPRIT

    def close(self):
        with self.changed:
            self.open = False
            self.changed.notify_all()

    def next(self):
        with self.changed:
            while not self.tickets:
                if not self.open:
                    return None
                self.changed.wait()  # VICTIM
                self.useless += not self.tickets
            return self.tickets.pop()


def clerk(office, served):
    while (ticket := office.next()) is not None:
        served.put(ticket + 1)


def main():
    office, served = Office(), queue.SimpleQueue()
    clerks = [threading.Thread(target=clerk, args=(office, served)) for _ in range(CLERKS)]
    for thread in clerks:
        thread.start()
    begun, answers = time.perf_counter(), 0
    for number in range(int(1600 * SCALE)):  # a customer asks, and waits for the answer
        office.submit(number)
        answers += served.get()
    office.close()
    for thread in clerks:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "useless": office.useless}))


if __name__ == "__main__":
    main()
