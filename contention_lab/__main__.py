"""Run the command line with `python -m contention_lab`; the same as `contention-lab`."""

from __future__ import annotations

import sys

from contention_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
