"""Plug-ins are loaded by threads, but each imports the same slow base package first."""

import importlib
import json
import os
import pathlib
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

FIX = "--fix" in sys.argv  # the base is imported before, once
SCALE = float(os.environ.get("CASE_SCALE", "1"))
NAMES = ("audio", "mail", "maps", "print", "scan")


def write_plugins(folder):
    package = folder / "slow_base"
    package.mkdir()
    rounds = int(1_200_000 * SCALE)
    lines = ["import hashlib", f"KEY = hashlib.pbkdf2_hmac('sha256', b'k', b's', {rounds})"]
    (package / "__init__.py").write_text("\n".join(lines))
    for name in NAMES:
        (folder / f"plugin_{name}.py").write_text("import slow_base\nNAME = __name__\n")


def load(name):
    return importlib.import_module(f"plugin_{name}").NAME  # VICTIM CULPRIT


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_plugins(pathlib.Path(folder))
        sys.path.insert(0, folder)
        if FIX:
            importlib.import_module("slow_base")
        begun = time.perf_counter()
        with ThreadPoolExecutor(len(NAMES)) as pool:
            loaded = list(pool.map(load, NAMES))
        wall = time.perf_counter() - begun
    print(json.dumps({"fix": FIX, "wall": round(wall, 3), "loaded": loaded}))


if __name__ == "__main__":
    main()
