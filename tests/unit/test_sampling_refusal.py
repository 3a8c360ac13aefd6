"""Why a process cannot be sampled, in one line, with the way out that applies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from contention_lab.sampling import py_spy, refusal

if TYPE_CHECKING:
    from pathlib import Path


def machine(folder: Path, *, owner: int, scope: int | None) -> Path:
    """Return a folder that looks like /proc, with the process 7."""
    (folder / "7").mkdir()
    (folder / "7" / "status").write_text(f"Name:\tpython\nUid:\t{owner}\t{owner}\t0\t0\n")
    if scope is not None:
        (folder / "sys/kernel/yama").mkdir(parents=True)
        (folder / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")
    return folder


@pytest.mark.parametrize(
    ("system", "me", "owner", "scope", "said"),
    [
        ("darwin", 500, 500, None, "macOS lets only root do that: sudo contention-lab attach 7"),
        ("linux", 0, 500, 1, "root has no CAP_SYS_PTRACE here"),
        ("linux", 0, 0, None, "--cap-add SYS_PTRACE"),
        ("linux", 500, 600, 1, "belongs to another user (uid 600): sudo contention-lab attach 7"),
        ("linux", 500, 500, 1, "sudo sysctl kernel.yama.ptrace_scope=0"),
        ("linux", 500, 500, 2, "ptrace_scope is 2, so that it takes CAP_SYS_PTRACE: sudo"),
        ("linux", 500, 500, 3, "nobody can change before the next boot: contention-lab record"),
        ("linux", 500, 500, 0, "lives in another namespace: sudo contention-lab attach 7"),
        ("linux", 500, 500, None, "lives in another namespace: sudo contention-lab attach 7"),
    ],
)
def test_no_permission_says_which_way_out_applies(
    system: str,
    me: int,
    owner: int,
    scope: int | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: me)

    line = str(refusal.not_permitted(7, machine(tmp_path, owner=owner, scope=scope), system))

    assert line.startswith("no permission to look into process 7: ")
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Permission Denied: Try running again with elevated permissions", "no permission to look"),
        ("Error: Failed to find python version from target process\n\nStack", "no running CPython"),
        ("Error: Failed to open\nStack backtrace", "py-spy cannot read process"),
    ],
)
def test_what_py_spy_says_becomes_one_line(answer: str, said: str) -> None:
    line = str(py_spy.failure(os.getpid(), answer))

    assert said in line
    assert "\n" not in line
