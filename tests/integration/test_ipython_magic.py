"""The cell magic, in an IPython of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.diagnosis import diagnose
from contention_lab.report import trace_page

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("IPython")

CELL = """
import threading, time
shop = threading.Lock()
def hold():
    with shop:
        time.sleep(0.2)
threads = [threading.Thread(target=hold) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("cell ran")
"""


def run(folder: Path, line: str, cell: str = CELL) -> subprocess.CompletedProcess[str]:
    program = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "contention_lab.ipython_magic")
shell.run_cell_magic("contention", {line!r}, {cell!r})
"""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"IPYTHONDIR": str(folder), "HOME": str(folder), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_a_cell_is_run_and_its_lock_named(tmp_path: Path) -> None:
    done = run(tmp_path, "-o cell.clt")

    assert "cell ran" in done.stdout
    assert "stand still in `hold`" in done.stdout
    assert "next: contention-lab report cell.clt" in done.stdout
    assert cl.load(tmp_path / "cell.clt").complete


NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "contention_lab.ipython_magic")
for cell in {cells!r}:
    shell.run_cell(cell, store_history=True)
"""
HELD = "import time\n\ndef held(lock):\n    with lock:\n        time.sleep(0.2)\n"
RUN = """%%contention -o cell.clt
import threading
shop = threading.Lock()
threads = [threading.Thread(target=held, args=(shop,)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_cells_are_named_as_people_see_them_and_have_their_source(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK.format(cells=["secret = 'mine'", HELD, RUN])],
        cwd=tmp_path,
        env={"IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    trace = cl.load(tmp_path / "cell.clt")

    assert "`held` (In [2]:4)" in done.stdout
    assert "made at In [3]:3" in done.stdout
    sites = {(lock.site.filename, lock.site.line) for lock in trace.locks.values() if lock.site}
    assert ("In [3]", 3) in sites
    assert not [frame for frame in trace.frames.values() if "ipython-input" in frame.filename]
    page = trace_page([trace], [diagnose(trace).to_json()])
    assert "<mark>    with lock:</mark>" in page
    assert "secret" not in str(trace.meta)


def test_without_a_name_nothing_is_kept(tmp_path: Path) -> None:
    done = run(tmp_path, "")

    assert "%%contention -o run.clt" in done.stdout
    assert not list(tmp_path.glob("*.clt"))


def test_an_error_in_the_cell_ends_the_recording(tmp_path: Path) -> None:
    done = run(tmp_path, "-o cell.clt", "raise ValueError('mine')")

    assert "ValueError" in done.stdout + done.stderr
    assert cl.load(tmp_path / "cell.clt").complete


def test_what_is_not_understood_is_answered_with_the_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "-x")

    assert "usage: %%contention" in done.stderr
    assert "cell ran" not in done.stdout
