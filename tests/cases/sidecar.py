"""The truth about a program: what its sidecar says, in a form that can be compared.

The format is that of the sample programs: free text with places in it (`... @ file.py:12`). Read
beyond it: `forbidden` (kinds, or `lock at fault` for all of these), `variants` (arguments with
which the program is another one) and `verdict_free_threaded`. It knows nothing about diagnoses.

`must_not_say` is free text. Of it a small vocabulary is understood, clause by clause (`;`, `/`); a
clause may forbid several things:

==============================  ================================================================
text                            forbids
==============================  ================================================================
a kind's own name               findings of that kind
"GIL"                           `gil-bound`, `gil-convoy`, `gil-masked-lock`
"event loop blocked"            `event-loop-blocked`
"idle"                          the verdict `idle-wait`
"overhead"                      `uncontended-overhead`
"no contention"                 the verdicts `healthy`, `idle-wait`, `uncontended-overhead`
"contention on NAME", "NAME     findings of contention about the locks assigned to NAME; where no
contention", "contention"       such name is in the program: about any lock, unless the truth is
                                itself a kind of contention
"slow ... holder", "slow        `slow-holder-elsewhere`; `serialised-by-lock`, `held-across-io`,
critical section"               `slow-holder-elsewhere`
"blame on the NAME path"        NAME as the first culprit
anything else of several words  the words themselves, in a summary
==============================  ================================================================
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from source_map import Place, SourceMap, places

if TYPE_CHECKING:
    from pathlib import Path

CONTENTION = frozenset(
    {
        *("serialised-by-lock", "held-across-io", "slow-holder-elsewhere", "spin-collapse"),
        *("unfair-lock", "thundering-herd", "capacity-limit"),
    }
)
LOCK_AT_FAULT = CONTENTION | {
    *("async-lock-across-await", "event-loop-blocked", "lock-order-deadlock", "lock-order-risk"),
    *("self-deadlock", "writer-starvation", "busy-polling", "import-lock"),
    *("pool-self-starvation", "external-lock"),
}
NO_LOCK_AT_FAULT = frozenset(
    {
        *("gil-bound", "gil-convoy", "gil-masked-lock", "native-oversubscription", "idle-wait"),
        *("starved-by-producer", "backpressure", "load-imbalance", "uncontended-overhead"),
        "healthy",
    }
)
KINDS = LOCK_AT_FAULT | NO_LOCK_AT_FAULT
ABOUT_NO_PYTHON_LOCK = frozenset(
    {"event-loop-blocked", "import-lock", "pool-self-starvation", "external-lock"}
)
"""Kinds whose lock may be made by no line of the program, or be no lock at all."""

_VOCABULARY = {
    r"\bGIL\b": {"gil-bound", "gil-convoy", "gil-masked-lock"},
    r"(?i)event loop blocked": {"event-loop-blocked"},
    r"(?i)overhead": {"uncontended-overhead"},
    r"(?i)\bslow\b.*\bholder\b": {"slow-holder-elsewhere"},
    r"(?i)slow critical section": {
        *("serialised-by-lock", "held-across-io", "slow-holder-elsewhere"),
    },
}
_NO_NAMES = frozenset({"lock", "queue", "thread", "condition", "barrier", "no", "self"})
"""Words before `contention` that say what kind of it is meant."""

ACCUSES_NOBODY = frozenset({"healthy", "idle-wait"})


@dataclass(frozen=True, slots=True)
class Bans:
    """What must not be said.

    Attributes
    ----------
    kinds
        Kinds that no finding may have.
    verdicts
        Kinds that the verdict may not be.
    contention_at
        Places of locks that no finding of contention may accuse.
    contention
        No finding of contention at all.
    culprits
        Functions that may not be the first culprit.
    phrases
        Words that no summary may contain, in lower case.
    """

    kinds: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()
    contention_at: frozenset[Place] = frozenset()
    contention: bool = False
    culprits: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Truth:
    """What is right about one program run with certain arguments.

    Attributes
    ----------
    args
        Its arguments.
    verdicts
        Accepted kinds, the one it is filed under first.
    lock_sites
        Where its lock is made; empty where that is not to be judged.
    lock_at_fault
        Whether a lock is at fault.
    victims, culprits
        Places of which one is to be named; empty where that is not to be judged.
    gone
        Kinds of finding about `lock_sites` that must not be there any more.
    bans
        What must not be said.
    """

    args: tuple[str, ...]
    verdicts: tuple[str, ...]
    lock_sites: tuple[Place, ...] = ()
    lock_at_fault: bool = False
    victims: tuple[Place, ...] = ()
    culprits: tuple[Place, ...] = ()
    gone: frozenset[str] = frozenset()
    bans: Bans = field(default_factory=Bans)


@dataclass(frozen=True, slots=True)
class Case:
    """A program, its sources, and the truths about it: as it is first, then its variants."""

    program: Path
    sources: SourceMap
    truths: tuple[Truth, ...]


class SidecarError(Exception):
    """A sidecar that cannot be read, in one line."""


def read_case(sidecar: Path, *, free_threaded: bool = False) -> Case:
    """Read a sidecar; the program lies beside it."""
    try:
        fields = json.loads(sidecar.read_text(encoding="utf-8"))
        program = sidecar.with_suffix(".py")
        sources = SourceMap(program.parent)
        verdicts = fields["verdict"]
        if free_threaded:
            verdicts = fields.get("verdict_free_threaded", verdicts)
        base = _as_it_is(fields, _kinds(verdicts), sources, program.name)
        variants = tuple(_variant(v, base) for v in fields.get("variants", ()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SidecarError(f"{sidecar}: cannot be read as a sidecar: {error!r}") from error
    if not program.is_file():
        raise SidecarError(f"{sidecar}: there is no program {program.name} beside it")
    return Case(program, sources, (base, *variants))


def _kinds(value: Any) -> tuple[str, ...]:
    kinds = (value,) if isinstance(value, str) else tuple(value)
    unknown = set(kinds) - KINDS
    if unknown or not kinds:
        raise ValueError(f"kinds {sorted(unknown) or 'missing'}")
    return kinds


def _as_it_is(
    fields: dict[str, Any], verdicts: tuple[str, ...], sources: SourceMap, file: str
) -> Truth:
    sites = [fields[name] for name in ("lock_site", "lock_site_2") if fields.get(name)]
    return Truth(
        args=tuple(fields.get("args", ())),
        verdicts=verdicts,
        lock_sites=tuple(place for text in sites for place in places(text)),
        lock_at_fault=bool(fields["lock_at_fault"]),
        victims=_party(fields.get("victim")),
        culprits=_party(fields.get("culprit")),
        bans=bans(
            fields.get("must_not_say", ""), fields.get("forbidden", ()), verdicts, sources, file
        ),
    )


def _party(text: str | None) -> tuple[Place, ...]:
    return () if not text or re.match(r"\s*none\b", text, re.IGNORECASE) else places(text)


def _variant(fields: dict[str, Any], base: Truth) -> Truth:
    gone = frozenset(base.verdicts) - ACCUSES_NOBODY if fields.get("gone", True) else frozenset()
    return Truth(
        args=(*base.args, *fields["args"]),
        verdicts=_kinds(fields["verdict"]),
        lock_sites=base.lock_sites,
        gone=gone,
        bans=Bans(kinds=frozenset(_forbidden(fields.get("forbidden", ())))),
    )


def _named(words: str, sources: SourceMap, file: str) -> set[Place]:
    """Return where the locks of `contention on NAME` and `NAME contention` are made."""
    names = re.findall(r"contention on (?:the )?([A-Za-z_][\w.]*)", words)
    names += re.findall(r"([A-Za-z_][\w.]*) contention", words)
    short = {name.rpartition(".")[2] for name in names} - _NO_NAMES
    return {place for name in short for place in sources.assignments(file, name)}


def _forbidden(names: Any) -> set[str]:
    kinds = set(names)
    if "lock at fault" in kinds:
        kinds = kinds - {"lock at fault"} | LOCK_AT_FAULT
    return set(_kinds(kinds)) if kinds else set()


def bans(
    text: str, forbidden: Any, verdicts: tuple[str, ...], sources: SourceMap, file: str
) -> Bans:
    """Turn free text, and a list of kinds, into what must not be said."""
    kinds, not_verdicts = _forbidden(forbidden), set[str]()
    contention_at, culprits, phrases = set[Place](), set[str](), set[str]()
    contention = False
    for clause in re.split(r";| / ", text):
        words = re.sub(r"\(.*?\)", "", clause).strip().strip("'\"")
        low = words.lower()
        here = {kind for kind in KINDS if kind in low}
        for pattern, said in _VOCABULARY.items():
            if re.search(pattern, words):
                here |= said
        kinds |= here
        if re.search(r"\bidle\b", low):
            not_verdicts.add("idle-wait")
        elif path := re.search(r"blame on (?:the )?(\w+) path", words):
            culprits.add(path[1])
        elif "no contention" in low:
            not_verdicts |= {"healthy", "idle-wait", "uncontended-overhead"}
        elif "contention" in low:
            named = _named(words, sources, file)
            contention_at |= named
            contention |= not named and not CONTENTION & set(verdicts)
        elif not here and " " in low:
            phrases.add(low)
    accepted = set(verdicts)
    return Bans(
        frozenset(kinds - accepted),
        frozenset(not_verdicts - accepted),
        frozenset(contention_at),
        contention,
        frozenset(culprits),
        frozenset(phrases),
    )
