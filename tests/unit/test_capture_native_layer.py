"""Whether the layer can be preloaded, and what LD_PRELOAD then is."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from contention_lab.capture import launch, native_layer

LAYER = "/opt/layer.so"


def elf(*kinds: int, linker: bytes = b"", machine: bytes | None = None) -> bytes:
    """Return the beginning of a 64-bit executable with program headers of these kinds."""
    head = bytearray(64 + 56 * len(kinds)) + linker
    head[:6] = b"\x7fELF\x02\x01"
    head[18:20] = machine or Path(sys.executable).read_bytes()[18:20]
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + len(kinds).to_bytes(2, "little")
    for number, kind in enumerate(kinds):
        at = 64 + 56 * number
        head[at : at + 4] = kind.to_bytes(4, "little")
        head[at + 8 : at + 16] = (64 + 56 * len(kinds)).to_bytes(8, "little")
        head[at + 32 : at + 40] = len(linker).to_bytes(8, "little")
    return bytes(head)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (elf(6, 3, 1), False),
        (elf(6, 1), True),
        (b"#!/bin/sh\n", False),
        (b"", False),
        (elf(1)[:80], False),
    ],
    ids=["with a dynamic linker", "without", "a script", "empty", "cut"],
)
def test_an_executable_without_a_dynamic_linker_is_static(head: bytes, expected: bool) -> None:
    assert native_layer.is_static(head) is expected


@pytest.mark.skipif(sys.platform != "linux", reason="the layer needs Linux")
def test_a_static_program_or_one_with_other_rights_goes_without(tmp_path: Path) -> None:
    static, privileged = tmp_path / "static", tmp_path / "privileged"
    static.write_bytes(elf(6, 1))
    privileged.write_bytes(elf(3))
    privileged.chmod(0o4755)

    assert native_layer.find(str(static)) == ("", f"{static} is statically linked")
    assert native_layer.find(str(privileged)) == (
        "",
        f"{privileged} runs with other rights (setuid or setgid)",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the layer needs Linux")
@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (elf(6, 3, linker=b"/lib/ld-musl-x86_64.so.1\0"), "is built for another C library (musl)"),
        (elf(3, machine=b"\xff\x7f"), "is built for another machine, or for 32 bits"),
        (b"\x7fELF\x01" + elf(3)[5:], "is built for another machine, or for 32 bits"),
    ],
    ids=["another C library", "another machine", "32 bits"],
)
def test_a_program_that_cannot_load_the_layer_goes_without(
    head: bytes, reason: str, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_bytes(head)

    assert native_layer.find(str(program)) == ("", f"{program} {reason}")


def test_a_program_for_this_c_library_can(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(elf(6, 3, linker=b"/lib64/ld-linux-x86-64.so.2\0"))

    assert native_layer.find(str(program)) == native_layer.find(sys.executable)


@pytest.mark.parametrize(
    ("preload", "expected"),
    [(None, LAYER), ("", f"{LAYER}:"), ("/lib/a.so:/lib/b.so", f"{LAYER}:/lib/a.so:/lib/b.so")],
)
def test_the_layer_comes_before_the_programs_own_preloads(
    preload: str | None, expected: str
) -> None:
    assert native_layer.with_layer(preload, LAYER) == expected


@pytest.mark.parametrize("in_bytes", [False, True])
def test_an_environment_for_a_child_has_the_layer_if_its_parent_has(in_bytes: bool) -> None:
    before = {b"LD_PRELOAD": b"a.so"} if in_bytes else {"LD_PRELOAD": "a.so"}
    variables = launch.child_variables("/t.clt", "profile", LAYER, existing=False)
    without = launch.child_variables("/t.clt", "profile", "", existing=False)

    after = launch.add_to(before, variables, in_bytes=in_bytes)

    key = b"LD_PRELOAD" if in_bytes else "LD_PRELOAD"
    value = after[key]
    assert (value.decode() if isinstance(value, bytes) else value) == f"{LAYER}:a.so"
    assert launch.add_to(before, without, in_bytes=in_bytes)[key] == before[key]


@pytest.mark.skipif(
    sys.platform != "linux" or "glibc" not in platform.libc_ver(),
    reason="the layer needs Linux and the GNU C library",
)
def test_the_layer_is_here_so_that_its_tests_are_not_left_out() -> None:
    path, reason = native_layer.find(sys.executable)

    assert (Path(path).is_file(), reason) == (True, "")
