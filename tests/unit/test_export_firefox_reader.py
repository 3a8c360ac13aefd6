"""Mozilla's own reader of profiles, on the command line, reads what is exported for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from export_case import case

from contention_lab.export.registry import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READER = "profiler-cli"
TRIES = 10


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[list[str]]:
    """Return the command of a reader that has loaded the profile."""
    path = shutil.which(READER)
    if path is None:
        pytest.skip(f"the npm package @firefox-devtools/{READER} (Node.js 24) is not installed")
    os.environ["PROFILER_CLI_SESSION_DIR"] = str(tmp_path)
    with (tmp_path / "profile.json").open("wb") as sink:
        FORMATS["firefox"].write(case(), sink, None)
    try:
        for _ in range(TRIES):  # its daemon must be ready within half a second, or it gives up
            said = answer([path], "load", str(tmp_path / "profile.json"))
            if answer([path], "profile", "info").returncode == 0:
                break
            time.sleep(1.0)
        else:
            pytest.skip(f"{READER} does not start here: {said.stdout} {said.stderr}")
        yield [path]
    finally:
        answer([path], "stop")
        del os.environ["PROFILER_CLI_SESSION_DIR"]


def answer(command: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_firefox_profiler_reads_threads_stacks_and_markers(reader: list[str]) -> None:
    threads = answer(reader, "thread", "list").stdout
    named = {thread.label for thread in case().threads.values() if not thread.is_task}
    tree = markers = ""
    for at in range(len(named)):
        answer(reader, "thread", "select", f"t-{at}")
        tree += answer(reader, "thread", "samples-top-down").stdout
        markers += answer(reader, "thread", "markers").stdout

    assert named & set(threads.split())
    assert "Catalog.get" in tree
    assert "catalog" in markers
