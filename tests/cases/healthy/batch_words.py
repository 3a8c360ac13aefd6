"""Counts words in one thread: no lock at all."""

import collections
import os

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def main():
    text = "to be or not to be that is the question " * int(60_000 * SCALE)
    counts = collections.Counter(text.split())
    print(counts.most_common(3))


if __name__ == "__main__":
    main()
