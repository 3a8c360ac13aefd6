"""Names of C++ and Rust functions as people write them.

A trace has them as the linker does, but for those of C++ where the recorded program had a C++
library. `multi-demangle` (the extra `native`) reads them all. Without it the path is read out of
the name, old style (`_ZN`) or new (`_R`): types, numbers and references to earlier parts are left
out, and what is more than a path stays as it is.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY: Final = "multi_demangle"
MANGLED: Final = ("_Z", "_R")

_LENGTH: Final = re.compile("[0-9]+")
_THREAD: Final = re.compile(
    r"std::thread::_State_impl<std::thread::_Invoker<std::tuple<"
    r"([^<>]*{lambda[^<>]*})[,> ].*::_M_run\(\)$"
)
"""What runs a lambda as a thread; the compiler puts that in line there."""
_HASH_LENGTH: Final = 17
"""Of the last part in Rust's old style."""


@lru_cache(maxsize=4096)
def readable(symbol: str) -> str:
    """Return the name as people write it; the same where it is not mangled or not understood."""
    plain = symbol.removeprefix("~")
    if not plain.startswith(MANGLED):
        body = _THREAD.match(symbol)
        return symbol if body is None else body[1]
    demangle = _demangler()
    name = "" if demangle is None else demangle(plain)
    if not name or name == plain:
        name = _path(plain) or plain
    return f"~{name}" if symbol.startswith("~") else name


@cache
def _demangler() -> Callable[[str], str] | None:
    """Return the library's function; None where it is not installed."""
    try:
        found: Callable[[str], str] = import_module(LIBRARY).demangle_symbol
    except (ImportError, AttributeError):
        return None
    return found


def _path(symbol: str) -> str:
    """Return the path in a name; empty if it is not a path alone."""
    is_old = symbol.startswith("_ZN")
    at, parts = 3 if is_old else 2, []
    while at < len(symbol) and symbol[at] != "." and not (is_old and symbol[at] == "E"):
        number = _LENGTH.match(symbol, at)
        if number is not None:
            at = number.end()
            if not is_old and symbol[at : at + 1] == "_":  # before a digit or an underscore
                at += 1
            length = int(number[0][:4])
            part = symbol[at : at + length]
            if len(part) < length:  # it was cut
                break
            at += length
            if part and not (is_old and length == _HASH_LENGTH and part[0] == "h"):
                parts.append(part)
        elif is_old:
            return ""
        elif symbol[at] in "sB":  # a number in letters and digits, up to "_"
            end = symbol.find("_", at)
            at = end + 1 if end >= 0 else at + 1
        else:
            at += 2 if symbol[at] == "N" else 1  # with the kind of name that follows
    return "::".join(parts)
