"""A program that comes from the standard input; locks that the standard library's classes keep."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from test_record_faults import environment

import contention_lab as cl

if TYPE_CHECKING:
    from pathlib import Path


def test_without_a_program_the_standard_input_is_run_as_python_does(tmp_path: Path) -> None:
    text = "import sys\nprint(__name__, sys.argv, sys.path[0])\n"
    runs = [
        subprocess.run(
            [sys.executable, *options],
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
            timeout=100,
            check=True,
        )
        for options in ([], ["-m", "contention_lab", "record"])
    ]
    assert runs[0].stdout == runs[1].stdout
    assert "wrote stdin.clt" in runs[1].stderr
    assert cl.load(tmp_path / "stdin.clt").complete


def test_locks_of_the_librarys_cached_properties_are_not_left_out(tmp_path: Path) -> None:
    text = f"""
        import sys
        sys.path.insert(0, {str(environment()["PYTHONPATH"].split(":")[0])!r})
        import ipaddress, contention_lab as cl
        with cl.record("inner.clt"):
            ipaddress.ip_network("10.0.0.0/8").broadcast_address
        """
    program = tmp_path / "inner.py"
    program.write_text(
        "\n".join(line.strip() for line in text.splitlines()).replace(
            "\nipaddress.ip_n", "\n    ipaddress.ip_n"
        )
    )
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, timeout=100, check=True)
    notes = cl.load(tmp_path / "inner.clt").meta["not_seen"]
    assert not [note for note in notes if note["what"] == "threading.RLock"]
