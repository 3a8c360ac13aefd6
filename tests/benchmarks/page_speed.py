"""How large pages are, and how quickly they open and answer; prints a table beside the goals.

Usage: python tests/benchmarks/page_speed.py [--frames 100000] [--intervals 200000] [--events 10]

`--events` is in millions; 0 leaves that page out, which takes minutes and gigabytes to make.

What is measured
----------------
Pages of a flame graph with so many frames, of a timeline with so many intervals, and of the
difference of two such flame graphs are opened in headless Chromium, 1280 pixels wide, as files.
`opens` is when the page had been loaded and what is in sight was drawn, and `all drawn` when the
views further down were drawn, too, of three openings the median;
acts are medians of nine, measured inside the page around the event handlers, drawing included.
Sizes are of the file. The page without data is that of an empty trace: what remains is style,
scripts and words. It exits with 1 if a goal is missed. Other programs that compute make times
longer: look at the load that is printed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from analysis_scale import write_trace

from conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES
from contention_lab.comparison import compare
from contention_lab.report import diff_page, trace_page
from contention_lab.trace import Trace, TraceBuilder, load, parse
from contention_lab.trace.schema import HOLD, WAIT

DEPTH: Final = 25
THREADS: Final = 8
OPENINGS: Final = 3
OPEN_MS: Final = 1000.0
ACT_MS: Final = 100.0
PAGE_KB: Final = 150.0
LARGE_MB: Final = 3.0

MEDIAN: Final = """
  const median = (act, canvas, before = () => {}) => {
    const times = Array.from({length: 9}, (_, turn) => {
      before(turn);
      const start = performance.now();
      act(turn);
      canvas.getContext("2d").getImageData(0, 0, 1, 1); // what is queued is drawn
      return performance.now() - start;
    });
    return times.sort((one, other) => one - other)[4];
  };
  const searched = (section, canvas) => median((turn) => {
    const field = document.querySelector(`${section} [data-flame=search]`);
    field.value = `method_${turn}`;
    field.dispatchEvent(new Event("input"));
  }, canvas);
"""
IN_FLAME: Final = """(section) => {
  const canvas = document.querySelector(`${section} [data-flame=canvas]`);
  const box = canvas.getBoundingClientRect();
  const click = (share, row) => canvas.dispatchEvent(new MouseEvent("click", {
    clientX: box.left + box.width * share, clientY: box.top + row, bubbles: true}));
  return {
    "zoom in": median((turn) => click(0.3 + 0.02 * turn, 60), canvas),
    "zoom out": median(() => click(0.5, 5), canvas),
    "search": searched(section, canvas),
  };
}"""
IN_TIMELINE: Final = """() => {
  const canvas = document.querySelector("[data-timeline=canvas]");
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const box = canvas.getBoundingClientRect();
  const wheel = (deltaY) => canvas.dispatchEvent(new WheelEvent("wheel", {deltaY, ctrlKey: true,
    clientX: box.left + box.width / 2, clientY: box.top + 80, bubbles: true, cancelable: true}));
  const move = (turn) => canvas.dispatchEvent(new PointerEvent("pointermove", {
    clientX: box.left + box.width * (0.3 + turn / 20), clientY: box.top + 120, bubbles: true}));
  const found = {};
  found["whole run"] = median(() => press("0"), canvas, () => press("+"));
  found["zoom in from the whole"] = median(() => press("+"), canvas, () => press("0"));
  found["zoom in by wheel"] = median(() => wheel(-200), canvas);
  found["pan"] = median(() => press("ArrowRight"), canvas);
  found["point at something"] = median(move, canvas);
  press("0");
  found["longest wait"] = median(() => press("w"), canvas, () => press("Escape"));
  found["its holder"] = median(() => press("h"), canvas, () => press("w"));
  found["root of its chain"] = median(() => press("r"), canvas, () => press("w"));
  press("0");
  found["next wait"] = median(() => press("]"), canvas);
  found["search of the flame graph"] =
    searched("#flame", document.querySelector("#flame [data-flame=canvas]"));
  return found;
}"""
OPENED: Final = """() => {
  for (const canvas of document.querySelectorAll("canvas")) {
    canvas.getContext("2d").getImageData(0, 0, 1, 1); // what is queued is drawn
  }
  return performance.getEntriesByType("navigation")[0].loadEventEnd;
}"""
ALL_DRAWN: Final = """() => new Promise((drawn) => {
  const look = () => {
    if (!document.documentElement.classList.contains("ready")) return setTimeout(look, 1);
    for (const canvas of document.querySelectorAll("canvas")) {
      canvas.getContext("2d").getImageData(0, 0, 1, 1);
    }
    drawn(performance.now());
  };
  look();
})"""


class Figure(NamedTuple):
    """What was measured, and the most that it may be."""

    what: str
    value: float
    goal: float
    unit: str

    @property
    def is_met(self) -> bool:
        return self.value <= self.goal


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--intervals", type=int, default=200_000)
    parser.add_argument("--events", type=float, default=10.0, help="millions")
    arguments = parser.parse_args()
    figures = [*_sizes(arguments.events), *_speeds(arguments.frames, arguments.intervals)]
    width = max(len(figure.what) for figure in figures)
    for figure in figures:
        verdict = "" if figure.is_met else "  MISSED"
        said = f"{figure.value:>9.1f} {figure.unit:<2}  at most {figure.goal:>6.0f} {figure.unit}"
        print(f"{figure.what:<{width}}  {said}{verdict}")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0 if all(figure.is_met for figure in figures) else 1


def _sizes(millions: float) -> list[Figure]:
    empty = len(_page(parse(TraceBuilder().bytes())).encode())
    found = [Figure("page without data", empty / 1e3, PAGE_KB, "kB")]
    if millions:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.clt"
            events = write_trace(path, round(millions * 1e6), "locks")
            large = len(_page(load(path)).encode())
        found.append(Figure(f"page of {events:,} events", large / 1e6, LARGE_MB, "MB"))
    return found


def _speeds(frames: int, intervals: int) -> list[Figure]:
    from playwright.sync_api import sync_playwright

    sides = [many_frames(frames), many_frames(frames, seed=2)]
    before, after = sides[:1], sides[1:]
    compared = diff_page(before, after, ("one", "other"), compare(before, after))
    pages = (
        (f"flame graph, {frames:,} frames", _page(sides[0]), IN_FLAME, "#flame"),
        (f"difference, twice {frames:,} frames", compared, IN_FLAME, "#difference"),
        (f"timeline, {intervals:,} intervals", _page(many_intervals(intervals)), IN_TIMELINE, ""),
    )
    program = next(filter(None, map(shutil.which, CHROMIUM_NAMES)))
    found = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser: Any = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        for number, (what, text, script, section) in enumerate(pages):
            file = Path(folder) / f"{number}.html"
            file.write_text(text, encoding="utf-8")
            opened, drawn = [], []
            for _ in range(OPENINGS):
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(file.as_uri())
                opened.append(page.evaluate(OPENED))
                drawn.append(page.evaluate(ALL_DRAWN))
                if len(opened) < OPENINGS:
                    page.close()
            found.append(Figure(f"{what}: opens", statistics.median(opened), OPEN_MS, "ms"))
            found.append(Figure(f"{what}: all drawn", statistics.median(drawn), OPEN_MS, "ms"))
            times = page.evaluate(
                f"(section) => {{{MEDIAN} return ({script})(section); }}", section
            )
            found += [Figure(f"{what}: {act}", ms, ACT_MS, "ms") for act, ms in times.items()]
            page.close()
        browser.close()
    return found


def _page(trace: Trace) -> str:
    return trace_page([trace], [{"verdict": "", "summary": "Many events.", "findings": []}])


def many_frames(frames: int, seed: int = 1) -> Trace:
    """A trace whose victims' stacks make a tree of about `frames` nodes."""
    chance = random.Random(seed)
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


if __name__ == "__main__":
    sys.exit(main())
