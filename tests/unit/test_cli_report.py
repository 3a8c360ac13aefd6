"""`contention-lab report` and the files it would write over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contention_lab.cli import main
from contention_lab.trace import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.clt"
    builder = TraceBuilder()
    builder.add_lock("Mutex", name="m")
    builder.add_thread("main")
    builder.write(path)
    return path


def test_an_earlier_page_is_replaced(trace: Path) -> None:
    assert main(["report", str(trace)]) == 0
    page = trace.with_suffix(".html")
    first = page.read_bytes()
    assert main(["report", str(trace)]) == 0
    assert page.read_bytes() == first


def test_a_trace_or_a_program_is_never_written_over(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = trace.with_name("precious.py")
    program.write_text("print(1)", encoding="utf-8")
    for target in (trace, program):
        before = target.read_bytes()
        assert main(["report", str(trace), "-o", str(target)]) == 2
        assert target.read_bytes() == before
        assert "name another file with -o" in capsys.readouterr().err


@pytest.mark.parametrize("has_browser", [True, False])
def test_the_page_is_opened_in_a_browser_if_there_is_one(
    trace: Path,
    has_browser: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened: list[str] = []

    def browser(address: str) -> bool:
        opened.append(address)
        return has_browser

    monkeypatch.setattr("webbrowser.open", browser)

    assert main(["report", str(trace), "--open"]) == 0

    page = trace.with_suffix(".html")
    assert opened == [page.as_uri()]
    assert (f"no browser was found; open {page}" in capsys.readouterr().err) is not has_browser
