"""One thread owns a data base; others hand it questions and wait for nothing else."""

import os
import queue
import sqlite3
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


def owner(questions):
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE facts (name, value)")
    while (item := questions.get()) is not None:
        name, value, answer = item
        base.execute("INSERT INTO facts VALUES (?, ?)", (name, value))
        answer.put(base.execute("SELECT count(*) FROM facts").fetchone()[0])
    base.close()


def asker(questions, name):
    answer = queue.SimpleQueue()
    for number in range(50):
        time.sleep(0.01 * SCALE)
        questions.put((name, number, answer))
        answer.get()


def main():
    questions = queue.Queue()
    owning = threading.Thread(target=owner, args=(questions,))
    owning.start()
    threads = [threading.Thread(target=asker, args=(questions, name)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    questions.put(None)
    owning.join()


if __name__ == "__main__":
    main()
