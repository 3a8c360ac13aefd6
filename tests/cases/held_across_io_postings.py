"""Clerks draw up postings and have a peer confirm them, all under the lock of the ledger."""

import json
import os
import socket
import sys
import threading
import time

FIX = "--fix" in sys.argv  # each clerk has a connection, and confirms before the lock is taken
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def confirmations(end):
    while end.recv(64):
        time.sleep(0.007 * SCALE)
        end.sendall(b"k")


class Ledger:
    def __init__(self):
        self.pages = threading.Lock()  # LOCK
        self.sums = [0] * 64

    def post(self, number, peer):
        if FIX:
            confirm(peer)
            with self.pages:
                self.sums[number % 64] += number
            return
        with self.pages:  # VICTIM
            self.draw_up(number)
            confirm(peer)

    def draw_up(self, number):
        until = time.thread_time() + 0.0025 * SCALE
        while time.thread_time() < until:
            for column in range(64):
                self.sums[column] = (self.sums[column] * 31 + number + column) % 9973


def confirm(peer):
    peer.sendall(b"posting")
    peer.recv(1)  # CULPRIT


def clerk(ledger, peer, count):
    for number in range(count):
        ledger.post(number, peer)
        time.sleep(0.0004 * SCALE)


def main():
    ledger = Ledger()
    peers = [socket.socketpair() for _ in range(4 if FIX else 1)]
    others = [threading.Thread(target=confirmations, args=(far,)) for _, far in peers]
    clerks = [
        threading.Thread(target=clerk, args=(ledger, peers[k % len(peers)][0], 30))
        for k in range(4)
    ]
    begun = time.perf_counter()
    for thread in (*others, *clerks):
        thread.start()
    for thread in clerks:
        thread.join()
    for near, _ in peers:
        near.close()
    for thread in others:
        thread.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "sum": sum(ledger.sums)}))


if __name__ == "__main__":
    main()
