"""Waits in native code on the timeline: one is pressed, read out, and said to be none of a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from native_scene import NativeScene

from contention_lab.report import trace_page
from contention_lab.trace.native import NativeKind

Opener = Callable[..., Any]
DIAGNOSIS = {"verdict": "external-lock", "summary": "A database makes them wait.", "findings": []}
READOUT = "[data-timeline=readout]"
PLACE_OF_WAIT = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const {data, width, height} = context.getImageData(0, 0, copy.width, copy.height);
  const style = getComputedStyle(document.documentElement);
  const hex = style.getPropertyValue("--line-4").trim();
  const wanted = hex.match(/[0-9a-f]{2}/gi).map(one => parseInt(one, 16));
  const is = at => wanted.every((one, i) => Math.abs(data[at + i] - one) < 3);
  for (let y = 0; y < height; y++) for (let x = 0, run = 0; x < width; x++) {
    run = is(4 * (y * width + x)) ? run + 1 : 0;
    if (run === 20) return [(x - 10) / devicePixelRatio, (y + 2) / devicePixelRatio];
  }
  return null;
}"""
"""Where, in a run of pixels of the colour of waits in native code."""


def database_page() -> str:
    """Thread `b` waits from 10 to 30 ms for a mutex of SQLite that `a` has."""
    scene = NativeScene()
    lock = scene.lock(NativeKind.MUTEX, "sqlite3_mutex_enter", "/usr/lib/libsqlite3.so.0")
    native = scene.native_stack(("sqlite3_step", "/usr/lib/libsqlite3.so.0"))
    a, b = scene.thread("a"), scene.thread("b")
    place = scene.stack("Store.put", 12)
    scene.wait(lock, b, 10, 30, stack=place, native_stack=native, holder=a)
    scene.release(lock, a, 29, native_stack=native)
    return trace_page([scene.trace()], [DIAGNOSIS])


def test_a_wait_in_native_code_is_pressed_and_read_out(open_page: Opener) -> None:
    page = open_page(database_page())
    canvas = page.locator("[data-timeline=canvas]")
    canvas.scroll_into_view_if_needed()

    place = page.eval_on_selector("[data-timeline=canvas]", PLACE_OF_WAIT)
    assert place, "nothing has the colour of a wait in native code"
    canvas.click(position={"x": place[0], "y": place[1]})

    told = page.inner_text(READOUT).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert told.startswith("b waited 20.0 ms in native code for ")
    assert "sqlite3" in told
    assert "Store.put" in told
