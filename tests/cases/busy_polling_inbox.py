"""Actors look into their inboxes, find nothing, sleep a little, and look again."""

import json
import os
import queue
import sys
import threading
import time

FIX = "--fix" in sys.argv  # get() waits
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Actor(threading.Thread):
    def __init__(self):
        super().__init__()
        self.inbox = queue.Queue()  # LOCK
        self.handled = self.looks = 0

    def receive(self):
        if FIX:
            return self.inbox.get()
        while True:
            self.looks += 1
            try:
                return self.inbox.get_nowait()  # VICTIM CULPRIT
            except queue.Empty:
                time.sleep(0.00002)

    def run(self):
        while (message := self.receive()) is not None:
            self.handled += message


def main():
    actors = [Actor() for _ in range(16)]
    for actor in actors:
        actor.start()
    burnt = time.process_time()
    for number in range(100):
        actors[number % len(actors)].inbox.put(1)
        time.sleep(0.01 * SCALE)
    for actor in actors:
        actor.inbox.put(None)
    for actor in actors:
        actor.join()
    cpu = time.process_time() - burnt
    looks = sum(actor.looks for actor in actors)
    print(json.dumps({"fix": FIX, "cpu": round(cpu, 3), "looks": looks}))


if __name__ == "__main__":
    main()
