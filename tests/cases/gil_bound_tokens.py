"""A thread pool splits and counts text in pure Python: only one thread runs at a time."""

import collections
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

FIX = "--fix" in sys.argv  # processes
SCALE = float(os.environ.get("CASE_SCALE", "1"))
TEXT = "the quick brown fox jumps over the lazy dog and runs off " * 60


def count(text):
    counts = collections.defaultdict(int)
    word = ""
    for letter in text:  # VICTIM CULPRIT
        if letter == " ":
            counts[word] += 1
            word = ""
        else:
            word += letter
    return len(counts)


def main():
    texts = [TEXT] * int(2000 * SCALE)
    begun = time.perf_counter()
    if FIX:
        pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    else:
        pool = ThreadPoolExecutor(4)
    with pool:
        total = sum(pool.map(count, texts, chunksize=50))
    print(json.dumps({"fix": FIX, "wall": round(time.perf_counter() - begun, 3), "n": total}))


if __name__ == "__main__":
    main()
