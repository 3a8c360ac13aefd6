"""The process of one run: `python -m contention_lab.sweep.point`, one JSON object in, one out.

It reads what to run from stdin, runs it, and writes what was measured to stdout. It decides
nothing. Whatever the workload prints goes to stderr, so that it cannot end up in the answer. The
answer is written after the recorder has closed its file.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from contention_lab.sweep.host import blas_libraries
from contention_lab.sweep.workload import load_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Bracket:
    """What is put around the timed batch: the recorder where asked for, and the switch counts."""

    def __init__(self, trace: str | None, level: str = "profile") -> None:
        self._trace, self._level = trace, level
        self.entered = 0
        self.voluntary_switches = 0
        self.involuntary_switches = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Record and count what runs inside."""
        self.entered += 1
        if self._trace is None:
            with self._counted():
                yield
            return
        from contention_lab import record

        with record(self._trace, level=self._level), self._counted():
            yield

    @contextmanager
    def _counted(self) -> Iterator[None]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        yield
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.voluntary_switches += after.ru_nvcsw - before.ru_nvcsw
        self.involuntary_switches += after.ru_nivcsw - before.ru_nivcsw


def measure(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point and return what was measured.

    Parameters
    ----------
    spec
        "workload": see `workload.workload_source`; "parameters"; "threads"; "trace": path of the
        trace to write, None for a timed run; "level" of the recording, `profile` where missing.

    Raises
    ------
    RuntimeError
        The workload did not run its batch inside `around()` exactly once, so nothing that was
        recorded can be trusted.
    """
    workload = load_workload(spec["workload"])
    bracket = Bracket(spec["trace"], spec.get("level", "profile"))
    measured = workload.run(spec["parameters"], spec["threads"], around=bracket)
    if bracket.entered != 1:
        raise RuntimeError(
            f"the workload entered `with around():` {bracket.entered} times; it must do so once"
        )
    return {
        "wall_s": float(measured.wall_s),
        "cpu_s": float(measured.cpu_s),
        "work": int(measured.work),
        "losses": [_exact(loss) for loss in measured.losses],
        "voluntary_switches": bracket.voluntary_switches,
        "involuntary_switches": bracket.involuntary_switches,
        "blas": blas_libraries() if "numpy" in sys.modules else [],
    }


def _exact(loss: Any) -> str:
    """Return a loss so that equal text means equal bits."""
    return loss if isinstance(loss, str) else float(loss).hex()


def main() -> None:
    """Answer one request."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    result = measure(json.load(sys.stdin))
    with answer:
        json.dump(result, answer)


if __name__ == "__main__":
    main()
