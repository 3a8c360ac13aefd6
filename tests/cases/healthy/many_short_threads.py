"""A thread for each request, as simple servers have them."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def request(number, done):
    time.sleep(0.003 * SCALE)
    done.append(number)


def main():
    done, threads = [], []
    for number in range(200):
        thread = threading.Thread(target=request, args=(number, done))
        thread.start()
        threads.append(thread)
        time.sleep(0.003 * SCALE)
    for thread in threads:
        thread.join()
    print(len(done))


if __name__ == "__main__":
    main()
