"""The judge of diagnoses, on diagnoses made by hand."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parents[1] / "cases"
sys.path.append(str(CASES))
judgement = importlib.import_module("judgement")
sidecar = importlib.import_module("sidecar")
source_map = importlib.import_module("source_map")

PROGRAM = """\
import threading


class Cache:
    def __init__(self):
        self.lock = threading.Lock()
        self.other = threading.Lock()

    def get(self):
        with self.lock:
            return self.load(
                1,
            )

    def load(self, key):
        return key


def request(cache):
    cache.get()
"""
FACTS: dict[str, Any] = {
    "lock_site": "cache.py:6",
    "lock_at_fault": True,
    "victim": "request -> Cache.get @ cache.py:10",
    "culprit": "Cache.get -> Cache.load @ cache.py:11",
    "must_not_say": "",
    "verdict": ["held-across-io"],
}


def case_of(tmp_path: Path, **changes: Any) -> Any:
    (tmp_path / "cache.py").write_text(PROGRAM)
    (tmp_path / "cache.json").write_text(json.dumps(FACTS | changes))
    return sidecar.read_case(tmp_path / "cache.json")


def site(line: int, function: str = "f") -> dict[str, Any]:
    return {"file": "/somewhere/else/cache.py", "line": line, "function": function}


def party(line: int, share: float = 1.0, stack: tuple[int, ...] = ()) -> dict[str, Any]:
    frames = [site(at) for at in stack or (line,)]
    return {"site": site(line), "stack": frames, "thread_s": share, "share": share}


def finding(kind: str = "held-across-io", **changes: Any) -> dict[str, Any]:
    lock = {"name": "lock", "type": "threading.Lock", "site": site(6), "instances": 1}
    base = {
        "kind": kind,
        "severity": 0.5,
        "summary": "Threads wait.",
        "lock": lock,
        "victims": [party(10)],
        "culprits": [party(11)],
    }
    return base | changes


def diagnosis(*findings: dict[str, Any], verdict: str | None = None) -> dict[str, Any]:
    kind = verdict or (findings[0]["kind"] if findings else "healthy")
    return {"verdict": kind, "summary": "", "findings": list(findings)}


def judged(case: Any, said: dict[str, Any], variant: int = 0) -> Any:
    return judgement.judge(case.truths[variant], case.sources, said)


def test_a_diagnosis_that_names_kind_lock_and_both_sides_is_right(tmp_path: Path) -> None:
    assert judged(case_of(tmp_path), diagnosis(finding())).outcome == "right"


def test_any_accepted_kind_will_do(tmp_path: Path) -> None:
    case = case_of(tmp_path, verdict=["slow-holder-elsewhere", "held-across-io"])

    assert judged(case, diagnosis(finding())).outcome == "right"


def test_another_kind_is_wrong_and_the_complaint_says_what_came(tmp_path: Path) -> None:
    result = judged(case_of(tmp_path), diagnosis(finding("spin-collapse")))

    assert result.outcome == "wrong"
    assert "expected held-across-io, got spin-collapse" in result.complaints[0]
    assert "cache.py:6" in result.complaints[0]


@pytest.mark.parametrize("verdict", ["healthy", "idle-wait"])
def test_to_accuse_nobody_is_silent(tmp_path: Path, verdict: str) -> None:
    assert judged(case_of(tmp_path), diagnosis(verdict=verdict)).outcome == "silent"


def test_an_accusation_of_a_healthy_program_is_wrong(tmp_path: Path) -> None:
    case = case_of(tmp_path, verdict=["healthy"], lock_at_fault=False, victim="none @ cache.py:10")

    assert judged(case, diagnosis()).outcome == "right"
    assert judged(case, diagnosis(finding())).outcome == "wrong"


def test_another_lock_is_wrong(tmp_path: Path) -> None:
    other = {"name": "x", "type": "threading.Lock", "site": site(7), "instances": 1}

    assert judged(case_of(tmp_path), diagnosis(finding(lock=other))).outcome == "wrong"


def test_no_lock_is_wrong_where_one_is_at_fault(tmp_path: Path) -> None:
    assert judged(case_of(tmp_path), diagnosis(finding(lock=None))).outcome == "wrong"


def test_the_lock_is_not_judged_where_the_sidecar_names_none(tmp_path: Path) -> None:
    case = case_of(tmp_path, lock_site=None)

    assert judged(case, diagnosis(finding(lock=None))).outcome == "right"


def test_another_line_of_the_same_function_is_the_same_place(tmp_path: Path) -> None:
    said = diagnosis(finding(victims=[party(12)]))

    assert judged(case_of(tmp_path), said).outcome == "right"


def test_a_place_in_another_function_is_wrong(tmp_path: Path) -> None:
    result = judged(case_of(tmp_path), diagnosis(finding(victims=[party(20)])))

    assert result.outcome == "wrong"
    assert "Cache.get cache.py:10" in result.complaints[0]


def test_a_frame_of_the_stack_counts_only_at_the_very_statement(tmp_path: Path) -> None:
    at_statement = diagnosis(finding(culprits=[party(16, stack=(16, 12, 20))]))
    elsewhere = diagnosis(finding(culprits=[party(16, stack=(16, 10, 20))]))

    assert judged(case_of(tmp_path), at_statement).outcome == "right"
    assert judged(case_of(tmp_path), elsewhere).outcome == "wrong"


def test_a_party_with_a_small_share_is_not_named(tmp_path: Path) -> None:
    small = diagnosis(finding(culprits=[party(20, 0.95), party(11, 0.05)]))
    notable = diagnosis(finding(culprits=[party(20, 0.85), party(11, 0.15)]))

    assert judged(case_of(tmp_path), small).outcome == "wrong"
    assert judged(case_of(tmp_path), notable).outcome == "right"
    assert judged(case_of(tmp_path), notable).remarks


def test_one_of_several_places_is_enough(tmp_path: Path) -> None:
    case = case_of(tmp_path, victim="one or the other @ cache.py:20 or cache.py:10")

    assert judged(case, diagnosis(finding())).outcome == "right"


def test_who_is_not_named_is_missed_only_where_a_lock_is_at_fault(tmp_path: Path) -> None:
    at_fault = case_of(tmp_path)
    assert judged(at_fault, diagnosis(finding(victims=[]))).outcome == "wrong"

    innocent = case_of(tmp_path, lock_at_fault=False, verdict="gil-bound")
    said = diagnosis(finding("gil-bound", lock=None, victims=[], culprits=[]))
    assert judged(innocent, said).outcome == "right"
    assert judged(innocent, said).remarks


def test_a_capacity_has_no_culprit_that_could_be_wrong(tmp_path: Path) -> None:
    case = case_of(tmp_path, verdict="capacity-limit")

    assert judged(case, diagnosis(finding("capacity-limit", culprits=[]))).outcome == "right"
    assert judged(case, diagnosis(finding("capacity-limit", culprits=[party(20)]))).remarks


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("GIL-bound (the process is idle)", "gil-bound"),
        ("too many readers; GIL", "gil-convoy"),
        ("thread contention; event loop blocked (the loop is idle)", "event-loop-blocked"),
        ("one slow holder", "slow-holder-elsewhere"),
        ("slow critical section; raise the timeout", "serialised-by-lock"),
        ("lock-order-risk", "lock-order-risk"),
        ("overhead", "uncontended-overhead"),
    ],
)
def test_what_must_not_be_said_is_wrong_beside_a_right_verdict(
    tmp_path: Path, text: str, kind: str
) -> None:
    case = case_of(tmp_path, must_not_say=text)

    assert judged(case, diagnosis(finding())).outcome == "right"
    assert judged(case, diagnosis(finding(), finding(kind))).outcome == "wrong"
    assert judged(case, diagnosis(finding(), finding(kind, severity=0.0))).outcome == "right"


def test_contention_of_a_named_lock_forbids_to_accuse_that_one(tmp_path: Path) -> None:
    case = case_of(tmp_path, must_not_say="lock contention on Cache.other")
    lock = {"name": "x", "type": "threading.Lock", "site": site(7), "instances": 1}

    assert judged(case, diagnosis(finding())).outcome == "right"
    said = diagnosis(finding(), finding("serialised-by-lock", lock=lock))
    assert judged(case, said).outcome == "wrong"


def test_contention_without_a_name_forbids_to_accuse_any_lock_of_it(tmp_path: Path) -> None:
    case = case_of(tmp_path, must_not_say="thread contention", verdict="async-lock-across-await")
    right = finding("async-lock-across-await")

    assert judged(case, diagnosis(right)).outcome == "right"
    assert judged(case, diagnosis(right, finding("serialised-by-lock"))).outcome == "wrong"


def test_no_contention_must_not_be_the_verdict(tmp_path: Path) -> None:
    case = case_of(tmp_path, must_not_say="no contention (blocking wait is 0 s)")

    assert "must not say healthy" in judged(case, diagnosis()).complaints


def test_idle_is_forbidden_as_a_verdict_only(tmp_path: Path) -> None:
    case = case_of(tmp_path, must_not_say="idle wait (the writer has work)")

    assert judged(case, diagnosis(finding(), finding("idle-wait"))).outcome == "right"
    assert "must not say idle-wait" in judged(case, diagnosis(verdict="idle-wait")).complaints


def test_the_innocent_path_must_not_be_the_first_culprit(tmp_path: Path) -> None:
    case = case_of(tmp_path, must_not_say="blame on the request path because it is frequent")

    assert judged(case, diagnosis(finding())).outcome == "right"
    said = diagnosis(finding(culprits=[party(20, 0.6), party(11, 0.4)]))
    assert judged(case, said).outcome == "wrong"


def test_forbidden_words_must_not_be_in_a_summary(tmp_path: Path) -> None:
    case = case_of(tmp_path, must_not_say="cache too small")

    said = diagnosis(finding(summary="The cache too small is."))
    assert judged(case, said).outcome == "wrong"


def test_forbidden_kinds_may_be_listed(tmp_path: Path) -> None:
    case = case_of(tmp_path, forbidden=["unfair-lock"])
    assert judged(case, diagnosis(finding(), finding("unfair-lock"))).outcome == "wrong"

    case = case_of(tmp_path, forbidden=["lock at fault"], verdict="gil-bound", lock_site=None)
    assert judged(case, diagnosis(finding("gil-bound"), finding("thundering-herd"))).complaints


class TestFixed:
    VARIANTS = ({"args": ["--fix"], "verdict": ["healthy"], "gone": True},)

    def test_is_right_when_healthy(self, tmp_path: Path) -> None:
        case = case_of(tmp_path, variants=self.VARIANTS)

        assert case.truths[1].args == ("--fix",)
        assert judged(case, diagnosis(), 1).outcome == "right"

    def test_is_right_when_the_finding_is_gone_and_no_lock_is_accused(self, tmp_path: Path) -> None:
        case = case_of(tmp_path, variants=self.VARIANTS)

        assert judged(case, diagnosis(finding("gil-bound", lock=None)), 1).outcome == "right"
        assert judged(case, diagnosis(finding("unfair-lock")), 1).outcome == "wrong"

    def test_is_wrong_when_the_finding_is_still_there(self, tmp_path: Path) -> None:
        case = case_of(tmp_path, variants=self.VARIANTS)
        said = diagnosis(finding("gil-bound", lock=None), finding())

        assert judged(case, diagnosis(finding()), 1).outcome == "wrong"
        assert judged(case, said, 1).outcome == "wrong"


def test_the_verdict_may_depend_on_the_build(tmp_path: Path) -> None:
    case_of(tmp_path, verdict="gil-bound", verdict_free_threaded="healthy")
    free = sidecar.read_case(tmp_path / "cache.json", free_threaded=True)

    assert free.truths[0].verdicts == ("healthy",)


@pytest.mark.parametrize("changes", [{"verdict": ["no-such-kind"]}, {"verdict": []}])
def test_a_sidecar_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(sidecar.SidecarError, match="kinds"):
        case_of(tmp_path, **changes)


def judge_exit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CASES / "judge.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    done = judge_exit(str(tmp_path))

    assert done.returncode == 2
    assert "no program with a sidecar" in done.stderr


def test_a_program_that_fails_is_wrong_and_so_is_the_exit_status(tmp_path: Path) -> None:
    case_of(tmp_path)
    (tmp_path / "cache.py").write_text("raise SystemExit(3)\n")

    done = judge_exit(str(tmp_path), "--json")

    assert done.returncode == 1
    (result,) = json.loads(done.stdout)
    assert result["outcome"] == "wrong"
    assert "`record` exits with 3" in result["complaints"][0]


SIDECARS = sorted(CASES.rglob("*.json"))


@pytest.mark.parametrize("path", SIDECARS, ids=lambda path: path.stem)
def test_places_in_sidecars_are_marked_in_the_programs(path: Path) -> None:
    fields = json.loads(path.read_text(encoding="utf-8"))
    sidecar.read_case(path)

    for name, word in (
        ("lock_site", "LOCK"),
        ("lock_site_2", "LOCK 2"),
        ("victim", "VICTIM"),
        ("culprit", "CULPRIT"),
    ):
        for place in source_map.places(fields.get(name)):
            line = (path.parent / place.file).read_text().splitlines()[place.line - 1]
            assert word in line or place.file != path.with_suffix(".py").name


def test_every_kind_has_two_programs_and_all_faults_have_a_fix() -> None:
    filed: dict[str, int] = {}
    for path in SIDECARS:
        fields = json.loads(path.read_text(encoding="utf-8"))
        kind = fields["verdict"][0]
        filed[kind] = filed.get(kind, 0) + 1
        assert fields.get("variants") or kind in ("healthy", "idle-wait")

    assert {kind: filed.get(kind, 0) for kind in sidecar.KINDS if filed.get(kind, 0) < 2} == {}
