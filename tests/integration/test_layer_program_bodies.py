"""`record ./program`: threads whose function is put in line in the language's library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from layer_programs import load_program, needs_layer

import contention_lab as cl
from contention_lab.analysis import lock_table
from contention_lab.diagnosis import diagnose

if TYPE_CHECKING:
    from contention_lab.trace import Trace

pytestmark = needs_layer

CXX = """\
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>
int main()
{
    std::mutex shelf;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] {
            for (int k = 0; k < 10; k++) {
                std::lock_guard<std::mutex> guard(shelf);
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
        });
    }
    for (auto &thread : threads) { thread.join(); }
}
"""
RUST = """\
use std::sync::{Arc, Mutex};
use std::{thread, time::Duration};
fn main() {
    let shelf = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..4).map(|_| {
        let shelf = shelf.clone();
        thread::spawn(move || {
            for _ in 0..10 {
                let mut books = shelf.lock().unwrap();
                *books += 1;
                thread::sleep(Duration::from_millis(2));
            }
        })
    }).collect();
    for thread in threads { thread.join().unwrap(); }
}
"""


def recorded(folder: Path, *compile_command: str) -> Trace:
    subprocess.run(compile_command, cwd=folder, check=True, capture_output=True)
    subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-q", "--", "./program"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(cl.__path__[0]).parent)},
        check=True,
        timeout=60,
    )
    return load_program(folder)


def places(trace: Trace) -> set[tuple[str, str, int]]:
    """Return where the one lock is taken and let go, as the findings say it."""
    [row] = lock_table(trace)
    [finding] = [one for one in diagnose(trace).findings if one.kind == "serialised-by-lock"]
    frames = [row.lock.site, *(one.site for one in (*finding.victims, *finding.culprits))]
    return {
        (frame.function, frame.filename.rpartition("/")[2], frame.line)
        for frame in frames
        if frame is not None
    }


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("options", [("-O2",), ("-O2", "-g"), ("-O0",)])
def test_a_lambda_that_is_a_thread_has_its_locks(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.cc").write_text(CXX)

    found = places(recorded(tmp_path, "c++", "-pthread", *options, "program.cc", "-o", "program"))

    assert found
    for function, file, line in found:
        assert function.startswith("main::{lambda()#1}")
        assert file == ("program.cc" if "-g" in options else "program")
        assert line in range(11, 17) if "-g" in options else line == 0


@pytest.mark.skipif(shutil.which("rustc") is None, reason="no Rust compiler")
@pytest.mark.parametrize("options", [("-O",), ("-O", "-g"), ()])
def test_a_closure_that_is_a_thread_has_its_locks(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.rs").write_text(RUST)

    found = places(recorded(tmp_path, "rustc", *options, "program.rs"))

    assert found
    for function, file, line in found:
        if "-g" in options:
            assert function.startswith("program::main::")
            assert (file, line in range(8, 14)) == ("program.rs", True)
        else:
            assert "closure" in function or "__rust_begin_short_backtrace" in function
            assert (file, line) == ("program", 0)
