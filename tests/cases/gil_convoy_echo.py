"""A client talks to another process; each time an answer is there, a busy thread has the GIL."""

import json
import os
import subprocess
import sys
import threading
import time

FIX = "--fix" in sys.argv  # no statistics meanwhile
SCALE = float(os.environ.get("CASE_SCALE", "1"))


PEER = """
import sys, time
for line in iter(sys.stdin.buffer.readline, b""):
    time.sleep(0.001)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


def statistics(stop, results):
    while not stop.is_set():
        total = 0
        for number in range(20_000):
            total = (total * 33 + number) & 0xFFFF  # CULPRIT
        results.append(total)


def ask(peer, question):
    peer.stdin.write(question)
    peer.stdin.flush()
    return peer.stdout.readline()  # VICTIM


def main():
    stop, results = threading.Event(), []
    counting = threading.Thread(target=statistics, args=(stop, results))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-S", "-c", PEER], stdin=pipe, stdout=pipe) as peer:
        ask(peer, b"ready\n")
        if not FIX:
            counting.start()
        begun = time.perf_counter()
        for number in range(int(100 * SCALE)):
            ask(peer, b"%d\n" % number)
        wall = time.perf_counter() - begun
        stop.set()
        peer.stdin.close()
    if not FIX:
        counting.join()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "results": len(results)}))


if __name__ == "__main__":
    main()
