"""Log lines go into a small queue; one thread ships them over a slow line, and all wait for it."""

import json
import os
import queue
import socket
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a line for every service
SCALE = float(os.environ.get("CASE_SCALE", "1"))
LINES = 36


def collector(sink):
    while data := sink.recv(32):
        time.sleep(0.0045 * SCALE)
        sink.sendall(data[:1])


def ship(lines, connection):
    while (line := lines.get()) is not None:
        connection.sendall(line)
        connection.recv(1)  # CULPRIT


def service(lines):
    for number in range(LINES):
        lines.put(b"line %d" % number)  # VICTIM
        if FIX:
            time.sleep(0.006 * SCALE)


def main():
    count = 5
    queues = [queue.Queue(maxsize=4) for _ in range(count if FIX else 1)]  # LOCK
    pairs = [socket.socketpair() for _ in queues]
    shippers = [
        threading.Thread(target=ship, args=(lines, pair[0]))
        for lines, pair in zip(queues, pairs, strict=True)
    ]
    sinks = [threading.Thread(target=collector, args=(pair[1],)) for pair in pairs]
    services = [
        threading.Thread(target=service, args=(queues[number % len(queues)],))
        for number in range(count)
    ]
    begun = time.perf_counter()
    for thread in (*sinks, *shippers, *services):
        thread.start()
    for thread in services:
        thread.join()
    for lines in queues:
        lines.put(None)
    for thread in shippers:
        thread.join()
    wall = time.perf_counter() - begun
    for ours, _ in pairs:
        ours.close()
    for thread in sinks:
        thread.join()
    for _, theirs in pairs:
        theirs.close()
    print(json.dumps({"fix": FIX, "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
