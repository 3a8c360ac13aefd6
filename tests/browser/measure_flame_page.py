"""How fast a page with a flame graph of many frames opens, zooms and searches; prints a table.

    python tests/browser/measure_flame_page.py [FRAMES]

Needs Playwright and Chromium. Times are of this machine, medians of 9 repetitions, measured inside
the page around the event handlers, drawing included.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from contention_lab.report import trace_page
from contention_lab.trace import Trace, TraceBuilder, parse
from contention_lab.trace.schema import WAIT

DEPTH = 25
IN_PAGE = """() => {
  const canvas = document.querySelector("[data-flame=canvas]");
  const field = document.querySelector("[data-flame=search]");
  const median = (act) => {
    const times = Array.from({length: 9}, (_, turn) => {
      const start = performance.now();
      act(turn);
      return performance.now() - start;
    });
    return times.sort((one, other) => one - other)[4];
  };
  const box = canvas.getBoundingClientRect();
  const click = (share, row) => canvas.dispatchEvent(new MouseEvent("click", {
    clientX: box.left + box.width * share, clientY: box.top + row, bubbles: true}));
  const [entry] = performance.getEntriesByType("navigation");
  return {
    "opened after": entry.loadEventEnd,
    "zoom in": median((turn) => click(0.3 + 0.02 * turn, 60)),
    "zoom out": median(() => click(0.5, 5)),
    "search": median((turn) => {
      field.value = `method_${turn}`;
      field.dispatchEvent(new Event("input"));
    }),
  };
}"""


def many_frames(frames: int) -> Trace:
    """A trace whose victims' stacks make a tree of about `frames` nodes."""
    chance = random.Random(1)
    builder = TraceBuilder()
    lock = builder.add_lock(name="catalog")
    thread = builder.add_thread("worker", cpu_ns=1)
    places = [
        builder.add_frame(f"Class{i % 31}.method_{i}", f"/srv/app/part{i % 97}.py", i % 800 + 1)
        for i in range(3000)
    ]
    seen: set[tuple[int, ...]] = set()
    stack: tuple[int, ...] = ()
    rows, moment = [], 0
    while len(seen) < frames:
        stack = stack[: chance.randrange(len(stack) + 1)]
        while len(stack) < DEPTH and (len(stack) < 3 or chance.random() < 0.9):
            stack += (chance.choice(places),)
            seen.add(stack)
        length = 100 + int(1000 * chance.paretovariate(1.2)) % 10**8
        rows.append((moment, moment + length, builder.add_stack(*reversed(stack))))
        moment += length
    waits = np.zeros(len(rows), dtype=WAIT)
    waits["start_ns"], waits["end_ns"], waits["stack"] = np.array(rows).T
    waits["lock"], waits["thread"] = lock, thread
    builder.add_waits(waits)
    return parse(builder.bytes())


def main(frames: int) -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    from conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES

    trace = many_frames(frames)
    start = time.perf_counter()
    text = trace_page([trace], [{"verdict": "", "summary": "Many frames.", "findings": []}])
    made_s = time.perf_counter() - start
    program = next(filter(None, map(shutil.which, CHROMIUM_NAMES)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(text, encoding="utf-8")
        browser: Any = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(file.as_uri())
        times = page.evaluate(IN_PAGE)
        browser.close()
    print(f"{frames:,} frames, page of {len(text.encode()) / 1e6:.1f} MB, made in {made_s:.1f} s")
    for what, milliseconds in times.items():
        print(f"  {what:14}{milliseconds:8.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
