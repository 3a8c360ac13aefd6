"""Handlers import what they need when they need it; the first import of a codec takes long."""

import json
import os
import pathlib
import sys
import tempfile
import threading
import time

FIX = "--fix" in sys.argv  # import before the threads start
SCALE = float(os.environ.get("CASE_SCALE", "1"))
CODEC = """
import time
time.sleep({seconds})  # reads its tables
def decode(text):
    return text[::-1]
"""


def handle(request, answers):
    import slow_codec  # VICTIM CULPRIT

    answers.append(slow_codec.decode(request))


def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "slow_codec.py").write_text(CODEC.format(seconds=0.6 * SCALE))
        sys.path.insert(0, folder)
        if FIX:
            import slow_codec  # noqa: F401
        answers = []
        threads = [
            threading.Thread(target=handle, args=(f"request {n}", answers)) for n in range(6)
        ]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "answers": len(answers)}))


if __name__ == "__main__":
    main()
