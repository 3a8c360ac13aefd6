"""`contention-lab` from this checkout, for a Python that has it not installed."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from contention_lab.cli import main

    main()
