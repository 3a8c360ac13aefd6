"""Lines of native calls: what `addr2line` prints, and files that are not what was recorded."""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

import pytest

from contention_lab.trace import native_lines as module
from contention_lab.trace.build_id import build_id
from contention_lab.trace.native_lines import native_lines, read_places

if TYPE_CHECKING:
    from pathlib import Path


def elf(path: Path, *notes: bytes) -> str:
    """Write a 64-bit ELF file that has nothing but notes."""
    body = b"".join(notes)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0),
    )
    path.write_bytes(head + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(body), 0, 4) + body)
    return str(path)


def note(kind: int, name: bytes, text: bytes) -> bytes:
    parts = (name.ljust(-(-len(name) // 4) * 4, b"\0"), text.ljust(-(-len(text) // 4) * 4, b"\0"))
    return struct.pack("<III", len(name), len(text), kind) + b"".join(parts)


ID = note(3, b"GNU\0", bytes.fromhex("0123456789abcdef"))


def test_the_build_id_is_found_behind_other_notes(tmp_path: Path) -> None:
    path = elf(tmp_path / "x", note(1, b"GNU\0", b"abi"), note(3, b"Go\0\0", b"other"), ID)

    assert build_id(path) == "0123456789abcdef"


def test_a_file_without_one_and_what_is_no_such_file_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n" * 100)

    assert build_id(elf(tmp_path / "x", note(1, b"GNU\0", b"abi"))) == ""
    assert build_id(elf(tmp_path / "y", ID[:13])) == ""
    assert build_id(str(tmp_path / "script")) is None
    assert build_id(str(tmp_path / "nowhere")) is None
    assert build_id(str(tmp_path)) is None


def test_of_code_put_in_line_the_outermost_place_counts() -> None:
    printed = """0x0000000000001234
_ZNSt5mutex4lockEv
/usr/include/c++/12/bits/std_mutex.h:100 (discriminator 3)
backward
/home/somebody/server.cpp:17
0x0000000000001300
??
??:0
0x0000000000001400
main
/home/somebody/a:b.c:?
0x1500
main
main.rs:5
"""
    places = read_places(printed.splitlines())

    assert places == {0x1234: ("/home/somebody/server.cpp", 17, ""), 0x1500: ("main.rs", 5, "")}


RUST = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src"
CXX = "/usr/include/c++/12/bits"


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (
            [
                ("_ZN3std4sync5mutex5Mutex4lock17h39d031d2ba508cfcE", f"{RUST}/sync/mutex.rs:9"),
                ("_ZN6ledger4post17h21e53d811a1cd708E", "/src/m.rs:3"),
                ("_ZN6ledger4main7closure17h21e53d811a1cd708E", "/src/m.rs:6"),
                ("_ZN3std3sys9backtrace28__rust_begin_short_backtrace", f"{RUST}/backtrace.rs:1"),
            ],
            ("/src/m.rs", 6, "ledger::main::closure"),
        ),
        (
            [
                ("_ZNSt5mutex4lockEv", f"{CXX}/std_mutex.h:100"),
                ("_ZN4shop5Store3putEi", "/src/shop.cc:14"),
                ("operator()", "/src/shop.cc:18"),
                ("__invoke<main()::<lambda()> >", f"{CXX}/invoke.h:96"),
                ("_M_run", f"{CXX}/std_thread.h:210"),
            ],
            ("/src/shop.cc", 18, ""),
        ),
        (
            [
                ("_ZNSt5mutex4lockEv", f"{CXX}/std_mutex.h:100"),
                ("_ZNSt6vectorIiE9push_backEi", "/usr/include/x86_64-linux-gnu/c++/12/v.h:7"),
            ],
            ("/usr/include/x86_64-linux-gnu/c++/12/v.h", 7, ""),
        ),
    ],
    ids=["a Rust thread", "a C++ thread", "all of it is the library's"],
)
def test_what_the_languages_library_runs_is_the_programs(
    chain: list[tuple[str, str]], expected: tuple[str, int, str]
) -> None:
    lines = ["0x0000000000001234", *(line for pair in chain for line in pair)]

    assert read_places(lines) == {0x1234: expected}


@pytest.mark.parametrize(
    ("recorded", "reason"), [("0123", "x has been built anew since"), ("", "x has been built anew")]
)
def test_nothing_is_said_of_another_build(tmp_path: Path, recorded: str, reason: str) -> None:
    found = native_lines(elf(tmp_path / "x", ID), recorded, [1])

    assert found.places == {}
    assert found.reason.startswith(reason)


def test_it_is_said_that_nobody_here_knows_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)

    found = native_lines(elf(tmp_path / "x", ID), "0123456789abcdef", [1])

    assert found.reason == "neither addr2line nor llvm-symbolizer is installed"


def test_a_file_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert native_lines(str(tmp_path / "x"), "", [1]).reason == "x is not there any more"


@pytest.mark.parametrize("tool", module.TOOLS)
def test_what_is_no_program_after_all_is_no_error(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"there is no {tool}")
    monkeypatch.setattr(module, "TOOLS", {tool: module.TOOLS[tool]})

    found = native_lines(elf(tmp_path / "x", ID), "0123456789abcdef", [1, 2])

    assert found.places == {}
    assert found.reason
