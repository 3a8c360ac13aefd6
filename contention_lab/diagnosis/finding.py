"""What a diagnosis consists of, and its form as JSON.

The names in `to_json` are a public contract: they may grow, and are never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contention_lab.trace import Frame

SCHEMA = 1
HEALTHY = "healthy"
IDLE_WAIT = "idle-wait"
EVENTS = "events"
SAMPLES = "samples"


@dataclass(frozen=True, slots=True)
class Party:
    """A place in the program on one side of a lock.

    Attributes
    ----------
    site
        The innermost frame of user code, None if there is none: where a victim waited, what a
        culprit was executing meanwhile.
    stack
        The stack that most of the time was spent under, innermost first.
    thread_s
        Of a victim: how long threads waited there. Of a culprit: how long others waited for it.
    share
        Of all the waiting for the lock, 0 to 1.
    acquired
        Of a culprit: where it had acquired the lock; None where that is not known.
    """

    site: Frame | None
    stack: tuple[Frame, ...]
    thread_s: float
    share: float
    acquired: Frame | None = None

    @property
    def code(self) -> Frame | None:
        """The code that people know it by: that which took the lock, or that which waited."""
        return self.acquired or self.site

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "site": site_json(self.site),
            "stack": [site_json(frame) for frame in self.stack],
            "thread_s": self.thread_s,
            "share": self.share,
            "acquired": site_json(self.acquired),
        }


@dataclass(frozen=True, slots=True)
class AccusedLock:
    """The lock of a finding: all locks of one kind and name that were made at one place.

    Two are the same lock whatever their number of instances.

    Attributes
    ----------
    name
        Its label.
    type
        The name of its class.
    site
        Where it was made.
    instances
        How many of them were used.
    native_library
        Of a lock of native code: whose it is; else empty. Its `site` is where it was first waited
        for.
    """

    name: str
    type: str
    site: Frame | None
    instances: int = field(compare=False)
    native_library: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "type": self.type,
            "site": site_json(self.site),
            "instances": self.instances,
            "library": self.native_library or None,
        }


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something to do about a finding.

    Attributes
    ----------
    kind
        `narrow`, `shard`, `park`, ...
    text
        What to do, one sentence.
    speedup
        How many times faster the program is predicted to be; None without a prediction.
    speedup_low, speedup_high
        Bounds on it; of a prediction its 80 % interval. 0 where no upper one is known.
    basis
        What the figures rest on: "simulated" or "bound".
    """

    kind: str
    text: str
    speedup: float | None = None
    speedup_low: float = 1.0
    speedup_high: float = 0.0
    basis: str = "bound"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that limits the program.

    Attributes
    ----------
    kind
        One of the kinds of the contract (`serialised-by-lock`, ...).
    severity
        Share of the wall time that it can explain, 0 to 1.
    summary
        One sentence for people.
    lock
        The lock at fault, None if it is not a lock.
    victims, culprits
        Who waited and who made them wait, the most first.
    evidence
        The figures it rests on; names carry units.
    remedies
        What to do, the most promising first.
    acquits
        Locks that were waited for, but of which it says that something else is at fault.
    """

    kind: str
    severity: float
    summary: str
    lock: AccusedLock | None
    victims: tuple[Party, ...]
    culprits: tuple[Party, ...]
    evidence: Mapping[str, float | int | None]
    remedies: tuple[Remedy, ...]
    acquits: tuple[AccusedLock, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "summary": self.summary,
            "lock": self.lock and self.lock.to_json(),
            "victims": [party.to_json() for party in self.victims],
            "culprits": [party.to_json() for party in self.culprits],
            "evidence": dict(self.evidence),
            "remedies": [remedy.to_json() for remedy in self.remedies],
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is to be said about a trace.

    Attributes
    ----------
    verdict
        The kind of the finding that limits the program most, or `healthy`.
    summary
        One sentence for people.
    findings
        The most severe first; empty for a healthy program.
    totals
        Sums over the program; see `totals`.
    python, machine
        What the trace says about the interpreter and the machine.
    problems
        What is wrong with the trace, if anything: the diagnosis covers only what could be read.
    not_seen
        What was there and could not be recorded, one sentence each: nothing is said about it.
    gil_source
        What figures about the GIL are from: `events` (every wait and hold, by the layer below
        Python) or `samples` (of the probe); None where there are none.
    """

    verdict: str
    summary: str
    findings: tuple[Finding, ...]
    totals: Mapping[str, float | int | None]
    python: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
    gil_source: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, schema 1."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "summary": self.summary,
            "findings": [finding.to_json() for finding in self.findings],
            "totals": dict(self.totals),
            "python": dict(self.python),
            "machine": dict(self.machine),
            "problems": list(self.problems),
            "not_seen": list(self.not_seen),
            "gil_source": self.gil_source,
        }


def site_json(frame: Frame | None) -> dict[str, Any] | None:
    """Return a place as plain data."""
    if frame is None:
        return None
    return {"file": frame.filename, "line": frame.line, "function": frame.function}
