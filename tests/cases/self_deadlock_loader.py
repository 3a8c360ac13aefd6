"""A cache calls a loader under its lock, and the loader asks the cache: it waits for itself."""

import json
import os
import sys
import threading
import time

FIX = "--fix" in sys.argv  # a lock that its owner may take again
SCALE = float(os.environ.get("CASE_SCALE", "1"))
PARENTS = {"leaf": "branch", "branch": "root"}


class Tree:
    def __init__(self):
        kind = threading.RLock if FIX else threading.Lock
        self._lock = kind()  # LOCK
        self._depth = {"root": 0}

    def depth(self, name):
        with self._lock:  # VICTIM CULPRIT
            if name not in self._depth:
                time.sleep(0.01 * SCALE)
                self._depth[name] = self.depth(PARENTS[name]) + 1
            return self._depth[name]


def main():
    tree, answers = Tree(), []
    thread = threading.Thread(target=lambda: answers.append(tree.depth("leaf")), daemon=True)
    thread.start()
    thread.join(0.7 * SCALE)
    print(json.dumps({"fix": FIX, "hung": thread.is_alive(), "answers": answers}))


if __name__ == "__main__":
    main()
