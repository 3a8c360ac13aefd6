"""Equations are solved one after the other by a pool; each call asks BLAS for five threads."""

import ctypes
import json
import os
import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

FIX = "--fix" in sys.argv  # no threads inside the calls
SCALE = float(os.environ.get("CASE_SCALE", "1"))


def use_blas_threads(count):
    folder = pathlib.Path(np.__file__).parents[1] / "numpy.libs"
    for path in folder.glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_"):
            if hasattr(library, name):
                getattr(library, name)(count)
                return True
    return False


def solve(matrix):
    return float(np.linalg.solve(matrix, matrix @ matrix).sum())  # VICTIM


def main():
    found = use_blas_threads(1 if FIX else 5)
    random = np.random.default_rng(5)
    matrices = random.standard_normal((int(2 * SCALE) or 1, 150, 150))
    begun, burnt = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(2) as pool:
        sums = list(pool.map(solve, matrices))
    wall, cpu = time.perf_counter() - begun, time.process_time() - burnt
    row = {"fix": FIX, "found": found, "wall": round(wall, 3), "cpu": round(cpu, 3)}
    print(json.dumps({**row, "sums": len(sums)}))


if __name__ == "__main__":
    main()
