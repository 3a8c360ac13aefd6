"""A parallel map over native work, in batches, with the results in order."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def digest(number):
    return hashlib.pbkdf2_hmac("sha256", b"map", b"%d" % number, int(9000 * SCALE)).hex()


def main():
    with ThreadPoolExecutor(2) as pool:
        print(len("".join(pool.map(digest, range(60), chunksize=5))))


if __name__ == "__main__":
    main()
