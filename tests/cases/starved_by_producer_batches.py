"""A training loop waits for each batch, since one thread augments them and cannot keep up."""

import json
import os
import sys
import threading
import time

import numpy as np

FIX = "--fix" in sys.argv  # the batches are augmented before
SCALE = float(os.environ.get("CASE_SCALE", "1"))
BATCHES = 60


class Feed:
    """Room for two batches; the trainer takes them, the augmenter fills it up."""

    def __init__(self):
        self.batches = []
        self.changed = threading.Condition()  # LOCK

    def put(self, batch):
        with self.changed:
            self.changed.wait_for(lambda: len(self.batches) < 2)
            self.batches.append(batch)
            self.changed.notify_all()

    def take(self):
        with self.changed:
            while not self.batches:
                self.changed.wait()  # VICTIM
            batch = self.batches.pop(0)
            self.changed.notify_all()
            return batch


def augment(image, rounds):
    for _ in range(rounds):
        image = np.sin(image) + 0.1 * np.cos(image)  # CULPRIT
    return image


def produce(feed, image):
    for _ in range(BATCHES):
        feed.put(image if FIX else augment(image, int(4 * SCALE)))


def train(feed, losses):
    weights = np.ones(200)
    for _ in range(BATCHES):
        batch = feed.take()
        time.sleep(0.0015 * SCALE)  # the accelerator computes
        losses.append(float((batch[:200] * weights).sum()))


def main():
    feed, losses = Feed(), []
    image = np.linspace(0.0, 1.0, 80_000)
    producer = threading.Thread(target=produce, args=(feed, image))
    trainer = threading.Thread(target=train, args=(feed, losses))
    begun = time.perf_counter()
    producer.start()
    trainer.start()
    trainer.join()
    producer.join()
    wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "losses": len(losses)}))


if __name__ == "__main__":
    main()
