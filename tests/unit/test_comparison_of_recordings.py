"""What became better or worse between recordings made by hand, and what fails a build."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from scipy import stats

from contention_lab.cli.diff import VIOLATED, command
from contention_lab.comparison import Condition, ConditionError, compare, difference
from contention_lab.comparison.condition import Outcome
from contention_lab.comparison.junit import junit_xml
from contention_lab.trace import Trace, TraceBuilder, parse

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def builder(waits_ms: list[int], *, line: int = 15, other_ms: int = 0) -> TraceBuilder:
    """Return a recording in which `get` waits for `refresh`, line numbers as given."""
    made = TraceBuilder(duration_ns=2_000 * MS)
    catalog = made.add_lock(
        "threading.Lock",
        name="Catalog._lock",
        site=made.add_frame("Catalog.__init__", "/srv/catalog.py", line),
    )
    get = made.add_stack(made.add_frame("Catalog.get", "/srv/catalog.py", line + 10))
    refresh = made.add_stack(made.add_frame("Catalog.refresh", "/srv/catalog.py", line + 20))
    reader, writer = made.add_thread("reader"), made.add_thread("writer")
    now = 0
    for wait in waits_ms:
        made.add_hold(catalog, writer, now, now + wait * MS, stack=refresh, waiters=1)
        made.add_wait(catalog, reader, now, now + wait * MS, stack=get, holder=writer)
        now += (wait + 1) * MS
    if other_ms:
        other = made.add_lock("threading.Lock", name="Queue.mutex")
        made.add_hold(other, writer, now, now + other_ms * MS)
        made.add_wait(other, reader, now, now + other_ms * MS, stack=get)
    return made


def recording(waits_ms: list[int], *, line: int = 15, other_ms: int = 0) -> Trace:
    return parse(builder(waits_ms, line=line, other_ms=other_ms).bytes())


def test_repeats_that_differ_clearly_are_worse() -> None:
    comparison = compare(
        [recording([100]), recording([102]), recording([98])],
        [recording([200]), recording([204]), recording([196])],
    )

    waited = comparison.totals["wait"]
    assert comparison.word == "worse"
    assert waited.before == pytest.approx(0.100)
    assert waited.after == pytest.approx(0.200)
    assert waited.low is not None
    assert waited.high is not None
    assert waited.low < 0.1 < waited.high


def test_the_interval_is_the_one_of_welch() -> None:
    before, after = [1.0, 2.0, 4.0], [3.0, 3.5, 9.0, 5.0]

    found = difference(before, after, 0.95)

    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_same_recordings_do_not_differ() -> None:
    same = [recording([100]), recording([140]), recording([60])]

    comparison = compare(same, same)

    assert comparison.word == "no difference"
    assert [one.wait.word(0.001) for one in comparison.locks] == ["no difference"]


def test_one_run_on_a_side_claims_nothing() -> None:
    comparison = compare([recording([100])], [recording([200]), recording([201])])

    assert not comparison.has_intervals
    assert comparison.totals["wait"].low is None
    assert comparison.word == "not repeated"


def test_a_lock_is_the_same_although_its_line_moved() -> None:
    comparison = compare([recording([100], line=15)], [recording([50], line=99)])

    (lock,) = comparison.locks
    assert lock.label == "Catalog._lock (catalog.py:99)"
    assert (lock.wait.before, lock.wait.after) == pytest.approx((0.1, 0.05))
    places = {(place.role, place.function): found for place, found in comparison.places}
    assert places["victim", "Catalog.get"].change == pytest.approx(-0.05)
    assert places["culprit", "Catalog.refresh"].change == pytest.approx(-0.05)


def test_locks_that_are_new_or_gone_are_called_so() -> None:
    old = [recording([50]), recording([50])]
    new = [recording([], other_ms=80), recording([], other_ms=80)]

    words = {one.key.name: one.wait.word(0.001) for one in compare(old, new).locks}

    assert words == {"Catalog._lock": "gone", "Queue.mutex": "new"}


def test_many_locks_widen_each_interval() -> None:
    def sides(others: int) -> list[list[Trace]]:
        return [
            [recording([base + run], other_ms=others) for run in (0, 4, 8)] for base in (100, 120)
        ]

    alone, together = (compare(*sides(others)).locks for others in (0, 90))

    def width(locks: Any) -> float:
        wait = next(one.wait for one in locks if one.key.name == "Catalog._lock")
        return float(wait.high - wait.low)

    assert width(together) > 1.2 * width(alone)


def test_a_side_without_recordings_is_refused() -> None:
    with pytest.raises(ValueError, match="both sides"):
        compare([], [recording([1])])


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("wait>+20%", True),
        ("wait>+150%", False),
        ("wait>+50ms", True),
        ("wait>+0.2s", False),
        ("wait>150ms", True),
        ("wait[catalog]>+20%", True),
        ("p99[Catalog]>1s", False),
        ("max>150 ms", True),
        ("contended>+5", False),
        ("contended>0", True),
        ("wall>+1s", False),
        ("wall>1s", True),
    ],
)
def test_conditions(text: str, failed: bool) -> None:
    comparison = compare([recording([100])], [recording([200])])

    outcome = Condition.parse(text).check(comparison)

    assert outcome.failed is failed
    assert "before" in outcome.reason


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("wait", "is no condition"),
        ("waits>+20%", "choose from wait"),
        ("wait>20%", "limits growth"),
        ("wait>+20", "takes a unit"),
        ("contended>+5ms", "takes no unit"),
        ("wall[x]>+1s", "leave out the lock"),
        ("wait>-5%", "is no condition"),
    ],
)
def test_what_is_no_condition_is_said_in_a_line(text: str, answer: str) -> None:
    with pytest.raises(ConditionError, match=answer) as raised:
        Condition.parse(text)

    assert "\n" not in str(raised.value)


def test_growth_that_may_be_chance_does_not_fail() -> None:
    noisy = compare([recording([100]), recording([200])], [recording([120]), recording([260])])

    outcome = Condition.parse("wait>+20%").check(noisy)

    assert not outcome.failed
    assert "chance" in outcome.reason


def test_growth_of_less_than_a_millisecond_does_not_fail() -> None:
    comparison = compare([parse(TraceBuilder().bytes())], [parse(TraceBuilder().bytes())])

    assert not Condition.parse("wait>+1us").check(comparison).failed


def test_a_condition_about_an_unknown_lock_is_a_mistake() -> None:
    with pytest.raises(ConditionError, match=r"there are Catalog\._lock"):
        Condition.parse("wait[catalogue]>+1%").check(compare([recording([1])], [recording([2])]))


def test_outcomes_become_test_cases() -> None:
    root = ElementTree.fromstring(
        junit_xml([Outcome("wait>+1%", True, 'grew by "<2"'), Outcome("wall>1s", False, "ok")], "s")
    )

    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite] == ["wait>+1%", "wall>1s"]
    failure = suite[0].find("failure")
    assert failure is not None
    assert failure.get("message") == 'grew by "<2"'


def folder(path: Path, *waits_ms: int) -> Path:
    path.mkdir()
    for number, wait in enumerate(waits_ms):
        builder([wait]).write(path / f"{number}.clt")
    return path


def test_folders_are_repeats_and_a_violated_condition_is_status_3(tmp_path: Path) -> None:
    before = folder(tmp_path / "a", 100, 101, 99)
    after = folder(tmp_path / "b", 200, 202, 201)
    junit = tmp_path / "out.xml"
    arguments = [str(before), str(after), "--fail-on", "wait>+20%", "--junit", str(junit)]

    result = CliRunner().invoke(command, arguments)

    assert result.exit_code == VIOLATED
    assert result.stderr.startswith("Waiting for locks: worse: 100 ms before, 201 ms after")
    assert "FAILED: wait>+20%" in result.stderr
    assert "Catalog._lock (catalog.py:15)" in result.stdout
    assert 'failures="1"' in junit.read_text()


def test_the_answer_ends_with_how_to_see_it_as_a_page(tmp_path: Path) -> None:
    sides = [str(folder(tmp_path / name, wait)) for name, wait in (("a b", 100), ("c", 50))]
    page = str(tmp_path / "diff.html")

    plain = CliRunner().invoke(command, sides)
    with_page = CliRunner().invoke(command, [*sides, "-o", page])

    words = ["contention-lab", "diff", *sides, "-o", "diff.html"]
    assert plain.stderr.splitlines()[-1] == f"next: {shlex.join(words)}"
    assert "next:" not in with_page.stderr


def test_the_comparison_is_printed_as_json(tmp_path: Path) -> None:
    sides = [str(folder(tmp_path / name, wait)) for name, wait in (("a", 100), ("b", 50))]

    result = CliRunner().invoke(command, [*sides, "--json"])

    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["runs"] == {"before": 1, "after": 1}
    assert found["locks"][0]["wait"]["change"] == pytest.approx(-0.05)
    assert {place["role"] for place in found["places"]} == {"victim", "culprit"}


def test_an_empty_folder_is_answered_with_what_to_type(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path), str(tmp_path)])

    assert result.exit_code == 1
    assert "no .clt file in this folder; record some" in result.stderr


def test_junit_without_a_condition_is_a_mistake(tmp_path: Path) -> None:
    sides = [str(folder(tmp_path / name, 1)) for name in "ab"]

    result = CliRunner().invoke(command, [*sides, "--junit", str(tmp_path / "x.xml")])

    assert result.exit_code == 2
    assert "--fail-on" in result.stderr
