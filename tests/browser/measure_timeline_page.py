"""How fast a page with a timeline of many intervals opens, zooms and jumps; prints a table.

    python tests/browser/measure_timeline_page.py [INTERVALS]

Needs Playwright and Chromium. Times are of this machine, medians of 9 repetitions, measured inside
the page around the event handlers, drawing included.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from contention_lab.report import trace_page
from contention_lab.trace import Trace, TraceBuilder, parse
from contention_lab.trace.schema import HOLD, WAIT

THREADS = 8
IN_PAGE = """() => {
  const canvas = document.querySelector("[data-timeline=canvas]");
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const box = canvas.getBoundingClientRect();
  const wheel = (deltaY) => canvas.dispatchEvent(new WheelEvent("wheel", {deltaY, ctrlKey: true,
    clientX: box.left + box.width / 2, clientY: box.top + 80, bubbles: true, cancelable: true}));
  const move = (turn) => canvas.dispatchEvent(new PointerEvent("pointermove", {
    clientX: box.left + box.width * (0.3 + turn / 20), clientY: box.top + 120, bubbles: true}));
  const field = document.querySelector("[data-flame=search]");
  const median = (act, before = () => {}) => {
    const times = Array.from({length: 9}, (_, turn) => {
      before(turn);
      const start = performance.now();
      act(turn);
      canvas.getContext("2d").getImageData(0, 0, 1, 1); // what is queued is drawn
      return performance.now() - start;
    });
    return times.sort((one, other) => one - other)[4];
  };
  const [entry] = performance.getEntriesByType("navigation");
  const found = {"opened after": entry.loadEventEnd};
  found["whole run"] = median(() => press("0"), () => press("+"));
  found["zoom in from the whole"] = median(() => press("+"), () => press("0"));
  found["zoom in by wheel"] = median(() => wheel(-200));
  found["pan"] = median(() => press("ArrowRight"));
  found["point at something"] = median(move);
  press("0");
  found["longest wait"] = median(() => press("w"), () => press("Escape"));
  found["its holder"] = median(() => press("h"), () => press("w"));
  found["root"] = median(() => press("r"), () => press("w"));
  press("0");
  found["next wait"] = median(() => press("]"));
  found["search of the flame graph"] = median((turn) => {
    field.value = `method_${turn}`;
    field.dispatchEvent(new Event("input"));
  });
  return found;
}"""


def many_intervals(intervals: int) -> Trace:
    """A trace of threads that take turns at ten locks: half the intervals wait, half hold."""
    chance = np.random.default_rng(1)
    builder = TraceBuilder()
    locks = [builder.add_lock(name=f"shard {i}") for i in range(10)]
    threads = [builder.add_thread(f"worker-{i}") for i in range(THREADS)]
    stacks = [
        builder.add_stack(builder.add_frame(f"Class{i}.method_{i}", f"/srv/part{i % 9}.py", i + 1))
        for i in range(60)
    ]
    turns = intervals // 2
    waited, held = chance.exponential(8_000, turns), chance.exponential(2_000, turns)
    thought = chance.exponential(5_000, turns)
    thread = np.arange(turns) % THREADS
    start = np.zeros(turns)
    for one in range(THREADS):
        mine = thread == one
        start[mine] = np.cumsum(waited[mine] + held[mine] + thought[mine])
    waits, holds = np.zeros(turns, dtype=WAIT), np.zeros(turns, dtype=HOLD)
    waits["start_ns"], waits["end_ns"] = start, start + waited + 1
    holds["start_ns"] = waits["end_ns"]
    holds["end_ns"] = holds["start_ns"] + held.astype(np.uint64) + 1
    waits["stack"] = np.array(stacks)[chance.integers(0, 60, turns)]
    holds["stack"] = waits["stack"]
    for records in (waits, holds):
        records["lock"] = np.array(locks)[np.arange(turns) // 7 % 10]
        records["thread"] = np.array(threads)[thread]
    holds["waiters"] = 1
    waits["holder"] = np.roll(waits["thread"], 1)
    builder.add_waits(waits)
    builder.add_holds(holds)
    return parse(builder.bytes())


def main(intervals: int) -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    from conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES

    trace = many_intervals(intervals)
    start = time.perf_counter()
    text = trace_page([trace], [{"verdict": "", "summary": "Many intervals.", "findings": []}])
    made_s = time.perf_counter() - start
    program = next(filter(None, map(shutil.which, CHROMIUM_NAMES)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(text, encoding="utf-8")
        browser: Any = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        for width, height in ((1280, 800), (3840, 2160)):
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(file.as_uri())
            times = page.evaluate(IN_PAGE)
            page.close()
            print(
                f"{intervals:,} intervals, page of {len(text.encode()) / 1e6:.2f} MB, made in "
                f"{made_s:.1f} s, {width} pixels wide"
            )
            for what, milliseconds in times.items():
                print(f"  {what:26}{milliseconds:8.1f} ms")
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
