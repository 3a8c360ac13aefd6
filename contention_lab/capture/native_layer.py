"""The shared object that `record` preloads: where it is, and where it cannot be used.

It stands before the C library's blocking calls (`native/layer/`), so that a recording sees every
wait for the GIL and every call in which the holder of a lock was blocked. Without it a program is
recorded all the same, with the GIL sampled.
"""

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PRELOAD: "Final" = "LD_PRELOAD"
LOST: "Final" = "waits for the GIL are only sampled, and calls that block under a lock are not seen"
"""What a recording without the layer lacks."""
OTHER_BUILD: "Final" = "it is of another build than the recorder: install contention-lab again"
"""Why it is not used although it is there."""

_SPECIAL: "Final" = ":; $\t\n"
"""Characters that the dynamic linker does not take as part of a path."""
_ELF_64: "Final" = b"\x7fELF\x02\x01"
_PROGRAM_HEADERS: "Final" = slice(32, 40)
_HEADER_SIZE_AND_COUNT: "Final" = slice(54, 58)
_INTERPRETER: "Final" = 3
_INTERPRETER_PATH: "Final" = (slice(8, 16), slice(32, 40))
_MACHINE: "Final" = slice(18, 20)


def find(executable: str) -> "tuple[str, str]":
    """Look for the layer.

    Parameters
    ----------
    executable
        The program that is to be started.

    Returns
    -------
    path : str
        The layer, empty where it cannot be used.
    reason : str
        Why not, in a few words.
    """
    path = _path()
    reason = _system() or _own_file(path) or _executable(executable)
    return ("", reason) if reason else (path, "")


def with_layer(preload: "str | None", path: str) -> str:
    """Return the value of LD_PRELOAD with the layer in front.

    Parameters
    ----------
    preload
        Its value, None if there is no such variable.
    path
        The layer.
    """
    return path if preload is None else f"{path}:{preload}"


def _path() -> str:
    from importlib.machinery import EXTENSION_SUFFIXES

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(package, "native", f"_layer{EXTENSION_SUFFIXES[0]}")


def _system() -> str:
    if sys.platform != "linux":
        return "it needs Linux"
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        library = None
    return "" if library else "it needs the GNU C library"


def _own_file(path: str) -> str:
    if not os.access(path, os.R_OK):
        return f"{path} is not there"
    if not set(_SPECIAL).isdisjoint(path):
        return f"{path} has a character that LD_PRELOAD does not allow"
    return ""


def _executable(path: str) -> str:
    try:
        mode = os.stat(path).st_mode
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError:
        return ""  # starting it will tell
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return f"{path} runs with other rights (setuid or setgid)"
    if is_static(head):
        return f"{path} is statically linked"
    if is_foreign(head):
        return f"{path} is built for another machine, or for 32 bits"
    if "musl" in interpreter(head):
        return f"{path} is built for another C library (musl)"
    return ""


def is_foreign(head: bytes) -> bool:
    """Whether the first bytes are those of an executable that is not of this machine's kind."""
    if not head.startswith(_ELF_64[:4]):
        return False
    with open(sys.executable, "rb") as file:
        own = file.read(len(head))
    return head[4:6] != own[4:6] or head[_MACHINE] != own[_MACHINE]


def interpreter(head: bytes) -> str:
    """Return the path of the dynamic linker that an executable asks for, empty for none."""
    for entry in _program_headers(head):
        if int.from_bytes(entry[:4], "little") == _INTERPRETER:
            at, size = (int.from_bytes(entry[part], "little") for part in _INTERPRETER_PATH)
            return head[at : at + size].rstrip(b"\0").decode("ascii", "replace")
    return ""


def is_static(head: bytes) -> bool:
    """Whether the first bytes are those of a 64-bit executable without a dynamic linker."""
    entries = _program_headers(head)
    kinds = (int.from_bytes(entry[:4], "little") for entry in entries)
    return bool(entries) and _INTERPRETER not in kinds


def _program_headers(head: bytes) -> list[bytes]:
    """Return the program headers of a 64-bit executable, none if that is none or they are cut."""
    if head[: len(_ELF_64)] != _ELF_64 or len(head) < 64:
        return []
    at = int.from_bytes(head[_PROGRAM_HEADERS], "little")
    sizes = head[_HEADER_SIZE_AND_COUNT]
    size, count = (int.from_bytes(sizes[i : i + 2], "little") for i in (0, 2))
    if size < 4 or at + size * count > len(head):
        return []
    return [head[at + size * i : at + size * (i + 1)] for i in range(count)]
