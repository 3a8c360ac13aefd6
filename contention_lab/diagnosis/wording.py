"""How figures and places are written in sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.diagnosis.finding import AccusedLock, Party
    from contention_lab.trace import Frame

_COMPREHENSIONS: Final = re.compile(r"(?:(?:^|\.)<(?:locals|(?:list|set|dict)comp|genexpr)>)+$")


def duration(seconds: float) -> str:
    """Write a time with two or three digits: `31 ms`, `6.1 s`, `480 ns`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size * 0.9995:
            return f"{number(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns" if seconds else "0 s"


def number(value: float) -> str:
    """Write a number with two digits, or all digits before the point: `0.28`, `6.1`, `754`."""
    if not value:
        return "0"
    exponent = int(f"{value:.1e}".partition("e")[2])  # after rounding to two digits
    return f"{value:.{max(0, 1 - exponent)}f}"


def counted(count: int, thing: str) -> str:
    """Write how many there are of something: `1 producer`, `4 producers`."""
    return f"{count} {thing}{'s' * (count != 1)}"


def percent(share: float) -> str:
    """Write a share of 1 in percent: `93 %`, `0.4 %`."""
    value = round(100.0 * share, 9)  # sums of floats end a little above or below a half
    return f"{value:.0f} %" if value >= 9.5 or not value else f"{number(value)} %"


def gain_said(speedup: float | None, low: float, high: float) -> str:
    """Write what a remedy brings: predicted with its interval, or its bound; "" for nothing."""
    if speedup is not None:
        return f"predicted: {number(speedup)} times as fast; {number(low)} to {number(high)}"
    return f"at most {number(high)} times as fast" if high and high >= 1.05 else ""


def place(frame: Frame | None) -> str:
    """Write a place in the program: `` `Server.backward` (server.py:40) ``."""
    return "code outside the program" if frame is None else f"`{name(frame)}` ({frame.place})"


def name(frame: Frame) -> str:
    """Write the name of a function, without what it is nested in: `worker`, `Server.backward`.

    A comprehension has the name of the function it is in.
    """
    function = _COMPREHENSIONS.sub("", frame.function) or "<module>"
    return function.rsplit("<locals>.", 1)[-1]


LONGEST: Final = 250
"""Characters of a sentence, above which it is not read."""


def brief(sentence: str) -> str:
    """Return a sentence, without its last clauses if it is too long to be read."""
    if len(sentence) <= LONGEST:
        return sentence
    depth, quoted, end = 0, False, 0
    for at, character in enumerate(sentence[:LONGEST]):
        quoted ^= character == "`"
        depth += 0 if quoted else (character == "(") - (character == ")")
        if character in ",;:" and not depth and not quoted and sentence[at + 1] == " ":
            end = at
    if end < LONGEST // 3:
        return f"{sentence[: LONGEST - 1]}…"
    return f"{sentence[:end]}."


def lock_and_origin(lock: AccusedLock) -> str:
    """Write a lock: `` `autodiff server` (SpinLock, made at server.py:31) ``."""
    origin = f", made at {lock.site.place}" if lock.site else ""
    many = f", {lock.instances} of them" if lock.instances > 1 else ""
    return f"`{lock.name}` ({lock.type or 'lock'}{origin}{many})"


def lock_name(lock: AccusedLock | None) -> str:
    """Write a lock by its name, and where it was made if the name does not say."""
    if lock is None:
        return "a lock"
    origin = lock.site.place if lock.site else ""
    told = lock.name.endswith(f":{lock.site.line}") if lock.site else True
    return f"`{lock.name}`" if told else f"`{lock.name}` (made at {origin})"


def names(parties: Sequence[Party], *, most: int = 3) -> str:
    """Write the functions of parties, each once: `` `register` and `backward` ``."""
    found = dict.fromkeys(f"`{name(party.code)}`" for party in parties if party.code is not None)
    return enumeration(list(found)[:most]) or "code outside the program"


def acting(parties: Sequence[Party], verb: str, *, most: int = 2) -> str:
    """Write what the functions of parties do: `` `a` keeps ``, `` `a` and `b` keep ``."""
    several = len({name(party.code) for party in parties if party.code is not None}) > 1
    return f"{names(parties, most=most)} {verb}{'s' * (not several or most == 1)}"


def enumeration(items: Sequence[str]) -> str:
    """Write a list: `a`, `a and b`, `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def seconds(value: float) -> str:
    """Write the time of a batch, in seconds from a tenth of one on: `0.28 s`, `31 ms`."""
    return f"{number(value)} s" if value >= 0.095 else duration(value)


def times(ratio: float, *, same: float) -> str:
    """Write how a time changed: `21.8 times as long`, `1.9 times as fast`, `the same`."""
    if 1.0 - same <= ratio <= 1.0 + same:
        return "the same"
    slower, factor = ratio > 1.0, max(ratio, 1.0 / ratio)
    digits = f"{factor:.2f}" if factor < 1.095 else f"{factor:.1f}"
    return f"{digits} times as {'long' if slower else 'fast'}"
