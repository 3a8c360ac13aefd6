"""Two transfers between two accounts lock them in opposite orders, for ever; main gives up."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # the lower number first
SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Account:
    def __init__(self, number, amount):
        self.number, self.amount = number, amount
        self.lock = threading.Lock()  # LOCK


def transfer(source, target, amount, both_hold):
    first, second = (source, target)
    if FIX and first.number > second.number:
        first, second = second, first
    time.sleep(0.005 * SCALE)  # the audit trail
    with first.lock:
        if not FIX:
            both_hold.wait()
        with second.lock:  # VICTIM CULPRIT
            source.amount -= amount
            target.amount += amount


def main():
    accounts = [Account(number, 100) for number in range(3)]
    both_hold = threading.Barrier(2)
    threads = [
        threading.Thread(target=transfer, args=(*accounts[:2], 10, both_hold), daemon=True),
        threading.Thread(target=transfer, args=(*accounts[1::-1], 5, both_hold), daemon=True),
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 0.9 * SCALE
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    hung = sum(thread.is_alive() for thread in threads)
    print(json.dumps({"fix": FIX, "hung": hung, "amounts": [a.amount for a in accounts]}))


if __name__ == "__main__":
    main()
