"""Customers are mailed by a pool, one task each; the batch waits for the giant among them."""

import concurrent.futures as cf
import json
import os
import sys
import time

FIX = "--fix" in sys.argv  # the giant is split
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def mail(customer, count):
    for _ in range(count):
        time.sleep(0.004 * SCALE)  # CULPRIT
    return customer, count


def batch(pool, sizes):
    tasks = []
    for customer, size in enumerate(sizes):
        if FIX:
            tasks += [pool.submit(mail, customer, 4) for _ in range(size // 4)]
        else:
            tasks.append(pool.submit(mail, customer, size))
    cf.wait(tasks)  # VICTIM
    return sum(count for _, count in (task.result() for task in tasks))


def main():
    sizes = [8, 12, 8, 8, 12, 8, 60]
    begun = time.perf_counter()
    with cf.ThreadPoolExecutor(4) as pool:
        mails = sum(batch(pool, sizes) for _ in range(4))
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "n": mails}))


if __name__ == "__main__":
    main()
