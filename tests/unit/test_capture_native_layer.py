"""Whether the layer can be preloaded, and what LD_PRELOAD then is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from contention_lab.capture import launch, native_layer

if TYPE_CHECKING:
    from pathlib import Path

LAYER = "/opt/layer.so"


def elf(*kinds: int) -> bytes:
    """Return the beginning of a 64-bit executable with program headers of these kinds."""
    head = bytearray(64 + 56 * len(kinds))
    head[:6] = b"\x7fELF\x02\x01"
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + len(kinds).to_bytes(2, "little")
    for number, kind in enumerate(kinds):
        at = 64 + 56 * number
        head[at : at + 4] = kind.to_bytes(4, "little")
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
    assert native_layer.find(str(privileged)) == ("", f"{privileged} runs with other rights")


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
