"""Training threads multiply small matrices, each on many more BLAS threads than there are cores."""

import ctypes
import json
import os
import pathlib
import sys
import threading
import time

import numpy as np

FIX = "--fix" in sys.argv  # one BLAS thread for each of ours
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def use_blas_threads(count):
    folder = pathlib.Path(np.__file__).parents[1] / "numpy.libs"
    for path in folder.glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", ""):
                call = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if call is not None:
                    call(count)
                    return True
    return False


def train(weights, gradient, steps):
    for _ in range(steps):
        step = weights @ gradient  # VICTIM
        weights -= 1e-6 * step


def main():
    found = use_blas_threads(1 if FIX else 8)
    random = np.random.default_rng(3)
    size = 176
    models = [random.standard_normal((2, size, size)) for _ in range(3)]
    threads = [threading.Thread(target=train, args=(*model, int(5 * SCALE))) for model in models]
    begun, burnt = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - begun, time.process_time() - burnt
    print(json.dumps({"fix": FIX, "found": found, "wall": round(wall, 3), "cpu": round(cpu, 3)}))


if __name__ == "__main__":
    main()
