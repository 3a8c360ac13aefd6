"""More permits than anybody needs."""

import os
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def main():
    permits = threading.BoundedSemaphore(10)

    def work():
        for _ in range(50):
            with permits:
                time.sleep(0.008 * SCALE)
            time.sleep(0.004 * SCALE)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
