"""Waits and holds that are not over when the recording ends are counted like those that are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from test_record_faults import record

import contention_lab as cl
from contention_lab.analysis import lock_table

if TYPE_CHECKING:
    from pathlib import Path


def test_the_line_at_the_end_counts_a_wait_that_never_ended(tmp_path: Path) -> None:
    code, _out, err = record(
        tmp_path,
        """
        import threading, time
        lock = threading.Lock()
        lock.acquire()
        threading.Thread(target=lock.acquire, daemon=True).start()
        time.sleep(0.5)
        """,
        "-o",
        "run.clt",
    )
    assert code == 0
    found = re.search(r" ([\d,]+) contended, (\S+) s waited", err)
    assert found is not None
    assert int(found[1]) >= 1
    assert float(found[2]) > 0.4


def test_a_hold_that_nobody_waits_for_is_counted_where_the_program_ends_in_it(
    tmp_path: Path,
) -> None:
    code, _out, _err = record(
        tmp_path,
        """
        import os, threading, time
        lock = threading.Lock()
        with lock:
            time.sleep(0.2)
            os._exit(5)
        """,
        "-o",
        "run.clt",
    )
    assert code == 5
    trace = cl.load(tmp_path / "run.clt")
    assert trace.complete
    (row,) = [
        row
        for row in lock_table(trace)
        if row.lock.site is not None and row.lock.site.filename.endswith("program.py")
    ]
    assert row.hold_s > 0.19
    assert row.contended == 0
