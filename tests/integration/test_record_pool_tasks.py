"""Tasks of a pool are called by what they run."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import contention_lab as cl

if TYPE_CHECKING:
    from pathlib import Path


class Job:
    """A task in many forms."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def run(self, number: int) -> int:
        """Return the argument."""
        return number

    def __call__(self, number: int) -> int:
        """Return the argument."""
        return number


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (abs, "abs"),
        ([].append, "list.append"),
        (int.bit_length, "int.bit_length"),
        (dict.fromkeys, "dict.fromkeys"),
        (Job, "Job"),
        (Job().run, "Job.run"),
        (Job(), "Job"),
        (functools.partial(Job().run), "Job.run"),
        (functools.partial(functools.partial(abs)), "abs"),
        (lambda _: None, "<lambda>"),
    ],
)
def test_a_task_is_called_by_its_function(task: Any, name: str, tmp_path: Path) -> None:
    with cl.record(tmp_path / "run.clt"), ThreadPoolExecutor(1, "pool") as executor:
        executor.submit(task, [] if task == dict.fromkeys else 1).result()

    names = {thread.name for thread in cl.load(tmp_path / "run.clt").threads.values()}
    assert names == {"MainThread", "pool_0", name}
