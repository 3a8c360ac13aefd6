"""What is said of each kind of finding is one sentence that is short enough to be read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from test_analysis_passed_turns import IN_ORDER, LAST_COME, Gates
from test_diagnosis_deadlocks import Program, deadlocked, risky, self_deadlocked
from test_diagnosis_findings import Case, collapse
from test_diagnosis_flow import (
    producer_and_consumers,
    producers_and_consumer,
    waiting_for_an_event,
)
from test_diagnosis_gil import Turns, crowd
from test_diagnosis_holders import Cache
from test_diagnosis_imbalance import meeting, pool
from test_diagnosis_looks import few_tries, outside, queue, retakes, timeouts, tries, uncontended
from test_diagnosis_native_lock import Store
from test_diagnosis_starvation import (
    event_herd,
    herd,
    imports,
    loop,
    semaphore,
    starving_pool,
    tasks_and_lock,
)
from test_diagnosis_writers import lightswitch, readers_and_writer, tickets, vacant

from contention_lab.diagnosis.registry import FINDINGS
from contention_lab.diagnosis.wording import LONGEST
from contention_lab.trace import Outcome
from contention_lab.trace.schema import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from contention_lab.diagnosis import Diagnosis

MADE: Final[dict[str, Callable[[], Diagnosis]]] = {
    "turns": lambda: Case().diagnosis(),
    "collapse": lambda: collapse().diagnosis(),
    "gates": lambda: Gates(IN_ORDER).scene.diagnosis(),
    "last come": lambda: Gates(LAST_COME, ago=1).scene.diagnosis(),
    "cache": lambda: Cache().diagnosis(),
    "slow holder": lambda: Cache(library=True).diagnosis(),
    "masked": lambda: Cache(state=State.RUNNABLE, gil=True, gil_always=True).diagnosis(),
    "idle": lambda: waiting_for_an_event(main=False, outcome=Outcome.ACQUIRED).diagnosis(),
    "deadlock": lambda: deadlocked().diagnosis(),
    "self-deadlock": lambda: self_deadlocked().diagnosis(),
    "risk": lambda: risky(Program()).diagnosis(),
    "full buffer": lambda: producers_and_consumer().diagnosis(),
    "empty buffer": lambda: producer_and_consumers().diagnosis(),
    "GIL": lambda: Turns().diagnosis(),
    "convoy": lambda: Turns(hungry=1, light=2).diagnosis(),
    "two that compute": lambda: Turns(hungry=2, light=2).diagnosis(),
    "crowd": crowd,
    "meeting": lambda: meeting().diagnosis(),
    "batches": lambda: pool([[10.0, 10.0, 10.0, 90.0]]).diagnosis(),
    "tries": tries,
    "few tries": few_tries,
    "timeouts": timeouts,
    "queue": queue,
    "retakes": retakes,
    "uncontended": uncontended,
    "outside": outside,
    "store": lambda: Store().diagnosis(),
    "herd": lambda: herd().diagnosis(),
    "event herd": lambda: event_herd().diagnosis(),
    "starving pool": lambda: starving_pool().diagnosis(),
    "imports": lambda: imports(waited_ms=300.0).diagnosis(),
    "permits": lambda: semaphore(permits=3).diagnosis(),
    "tasks": lambda: tasks_and_lock().diagnosis(),
    "loop": lambda: loop().diagnosis(),
    "readers": lambda: readers_and_writer().diagnosis(),
    "tickets": lambda: tickets().diagnosis(),
    "vacant": lambda: vacant().diagnosis(),
    "lightswitch": lambda: lightswitch().diagnosis(),
}
KINDS: Final = {finder.__module__.rpartition(".")[2].replace("_", "-") for finder in FINDINGS}


@pytest.mark.parametrize("name", MADE)
def test_each_summary_is_one_short_sentence(name: str) -> None:
    diagnosis = MADE[name]()

    for summary in [diagnosis.summary, *(one.summary for one in diagnosis.findings)]:
        prose = re.sub(r"`[^`]*`|\([^()]*\)", "it", summary)
        assert len(summary) <= LONGEST, summary
        assert summary.endswith("."), summary
        assert not re.search(r"[.!?…] ?[A-Z]", prose), summary
        assert summary.count("`") % 2 == 0, summary
        assert summary.count("(") == summary.count(")"), summary
        assert "  " not in summary, summary
        assert not re.search(r"\band it keeps\b|\b1 threads\b|\bit and it \w+s it\b", prose), (
            summary
        )


def test_every_kind_is_looked_at() -> None:
    kinds = {one.kind for made in MADE.values() for one in made().findings}

    assert kinds >= KINDS - {"native-lock"}  # which says `external-lock`
