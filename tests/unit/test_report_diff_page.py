"""The difference of flame trees, and the page that shows it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from report_case import HOSTILE, flagship_trace

from contention_lab.analysis import FlameNode, flame
from contention_lab.cli.diff import VIOLATED, command
from contention_lab.comparison import Condition, compare
from contention_lab.comparison.frame_difference import frame_difference
from contention_lab.comparison.observation import lock_keys
from contention_lab.report import diff_page, trace_page
from contention_lab.report.difference_data import CLAIMS, flat_difference
from contention_lab.report.difference_section import difference_view
from contention_lab.report.flame_kinds import FLAME_KINDS
from contention_lab.report.flame_table import FrameTable
from contention_lab.trace import Trace, TraceBuilder, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contention_lab.comparison.frame_difference import FrameDifference

MS = 1_000_000


def node(name: str, ms: float, *children: FlameNode, line: int = 1) -> FlameNode:
    total = round(ms * MS)
    inner = sum(child.total_ns for child in children)
    return FlameNode(name, f"/srv/{name}.py", line, total - inner, total, children)


def walk(root: FrameDifference) -> Iterator[FrameDifference]:
    yield root
    for child in root.children:
        yield from walk(child)


def words(root: FrameDifference) -> dict[str, str]:
    return {one.name: one.word for one in walk(root)}


def test_repeats_tell_what_is_more_less_new_and_gone_from_what_may_be_chance() -> None:
    def before(jitter: float) -> FlameNode:
        parts = node("same", 50 + jitter), node("less", 40 + jitter), node("gone", 30 + jitter)
        return node("all", 120 + 3 * jitter, *parts)

    def after(jitter: float) -> FlameNode:
        parts = node("same", 50 - jitter), node("less", 10 + jitter), node("new", 60 + jitter)
        return node("all", 120 + jitter, *parts)

    found = frame_difference(
        [before(0), before(0.2), before(0.4)], [after(0), after(0.2), after(0.4)]
    )

    assert words(found) == {
        "all": "no difference",
        "same": "no difference",
        "less": "better",
        "gone": "gone",
        "new": "new",
    }
    less = next(one for one in walk(found) if one.name == "less")
    assert less.time.change == pytest.approx(-0.030)
    assert less.time.low is not None
    assert less.time.high is not None
    assert less.time.low < -0.030 < less.time.high < 0


def test_one_recording_on_a_side_names_what_is_new_and_gone_and_claims_no_more() -> None:
    found = frame_difference(
        [node("all", 100, node("same", 60), node("gone", 40))],
        [node("all", 190, node("same", 120), node("new", 70))],
    )

    assert words(found) == {
        "all": "not repeated",
        "same": "not repeated",
        "gone": "gone",
        "new": "new",
    }
    assert all(one.time.low is None for one in walk(found))


def test_what_takes_less_than_a_hundredth_is_not_judged() -> None:
    found = frame_difference(
        [node("all", 1000, node("small", 9)), node("all", 1000, node("small", 9))],
        [node("all", 1000, node("small", 2)), node("all", 1000, node("small", 2))],
    )

    assert words(found)["small"] == "no difference"
    assert found.children[0].time.low is None


def test_a_frame_is_the_same_frame_on_another_line_in_another_folder() -> None:
    before = FlameNode("work", "/v1/app.py", 10, MS, MS, ())
    after = FlameNode("work", "/v2/app.py", 25, 2 * MS, 2 * MS, ())

    found = frame_difference([node("all", 1, before)], [node("all", 2, after)])

    (work,) = found.children
    assert (work.time.before, work.time.after, work.line) == (0.001, 0.002, 25)


def test_a_nameless_lock_is_the_same_lock_when_its_line_has_moved() -> None:
    def version(line: int) -> Trace:
        made = TraceBuilder()
        lock = made.add_lock("Lock", site=made.add_frame("Pool.__init__", "/srv/pool.py", line))
        stack = made.add_stack(made.add_frame("get", "/srv/pool.py", line + 30))
        made.add_wait(lock, made.add_thread("a"), 0, 20 * MS, stack=stack)
        return parse(made.bytes())

    sides = version(10), version(12)

    found = frame_difference(
        [flame(sides[0], "victim")], [flame(sides[1], "victim")], [lock_keys(s) for s in sides]
    )

    assert [one.word for one in walk(found)] == ["no difference"] * 3


def test_a_chain_of_calls_counts_as_one_comparison() -> None:
    def chained(ms: float, depth: int) -> FlameNode:
        inner = node("leaf", ms)
        for at in range(depth):
            inner = node(f"f{at}", ms, inner)
        return node("all", ms, inner)

    short, long = (
        frame_difference(
            [chained(ms, depth) for ms in (10, 11, 12)], [chained(ms, depth) for ms in (20, 21, 24)]
        )
        for depth in (1, 50)
    )

    assert short.children[0].time == long.children[0].time


def test_arrays_keep_their_sums_when_small_frames_are_merged() -> None:
    before = node("all", 100, *(node(f"part{at}", at + 1) for at in range(9)))
    after = node("all", 80, *(node(f"part{at}", 9 - at) for at in range(9)))
    root = frame_difference([before], [after])
    frames = FrameTable()

    found = flat_difference(root, "hold", frames, 5)

    assert len(found["frame"]) < 10
    assert frames.rows[found["frame"][-1]][0].endswith("smaller frames)")
    assert sum(found["before"][1:]) == 45 * MS
    assert sum(found["after"][1:]) == 45 * MS
    assert "claim" not in found


def test_arrays_of_repeats_say_what_is_claimed_of_each_frame() -> None:
    sides = [[node("all", 50 + ms, node("f", 50 + ms)) for ms in range(3)] for _ in "ba"]
    sides[1] = [node("all", 90 + ms, node("f", 90 + ms)) for ms in range(3)]

    found = flat_difference(frame_difference(*sides), "hold", FrameTable(), 100)

    assert [CLAIMS[claim] for claim in found["claim"]] == ["worse", "worse"]
    low, high = found["interval"][0]
    assert 0 < low < 40 * MS < high


def test_frames_of_one_side_are_named_with_their_caller_and_not_what_is_below_them() -> None:
    before = node("all", 50, node("serve", 50, node("read", 50)))
    after = node("all", 70, node("serve", 70, node("fetch", 70, node("parse", 60))))

    view = difference_view(FLAME_KINDS[0], frame_difference([before], [after]))

    assert [(one.name, one.caller, one.with_it) for one in view.new] == [("fetch", "serve", 1)]
    assert [(one.name, one.seconds) for one in view.gone] == [("read", 0.05)]


@pytest.fixture(scope="module")
def sides() -> tuple[list[Trace], list[Trace]]:
    before = [flagship_trace(4, steps) for steps in (11, 12, 13)]
    return before, [flagship_trace(8, steps) for steps in (11, 12, 13)]


def page_of(sides: tuple[list[Trace], list[Trace]], *conditions: str) -> str:
    comparison = compare(*sides)
    outcomes = [Condition.parse(text).check(comparison) for text in conditions]
    return diff_page(*sides, ("v1", "v2"), comparison, outcomes)


def text_of(page: str) -> str:
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
    plain = re.sub(r"<[^>]+>", " ", body).replace("\N{NARROW NO-BREAK SPACE}", " ")
    return re.sub(r"\s+", " ", plain)


def test_the_verdict_stands_on_top_with_figures_and_interval(
    sides: tuple[list[Trace], list[Trace]],
) -> None:
    text = text_of(page_of(sides))

    waited = compare(*sides).totals["wait"]
    assert "Waiting for locks is worse: 264 ms before, 1.29 s after" in text
    assert waited.before == pytest.approx(0.264, rel=0.01)
    assert "at 95 % confidence" in text
    assert text.index("is worse") < text.index("Difference of the flame graphs")


def test_the_lock_named_on_top_changed_in_the_way_the_whole_did() -> None:
    def repeats(**waits_ms: float) -> list[Trace]:
        found = []
        for factor in (1.0, 1.01, 0.99):
            builder = TraceBuilder(duration_ns=900 * MS)
            thread = builder.add_thread("worker")
            for lock, ms in waits_ms.items():
                builder.add_wait(builder.add_lock(name=lock), thread, 0, round(ms * MS * factor))
            found.append(parse(builder.bytes()))
        return found

    sides = repeats(a=60.0, b=90.0), repeats(a=5.0, c=50.0)

    text = text_of(page_of(sides))

    assert "Waiting for locks is better: 150 ms before, 55.0 ms after, most of all for “b”" in text
    sides = repeats(a=60.0, b=60.0), repeats(b=1.0, c=80.0)
    assert ", most of all for “a”, −60.0 ms" in text_of(page_of(sides))
    assert " , lock" not in text


def test_equal_sides_are_no_difference(sides: tuple[list[Trace], list[Trace]]) -> None:
    page = page_of((sides[0], sides[0]))

    assert "No difference in waiting for locks" in text_of(page)
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.S)[0])
    assert {claim for tree in data["difference"].values() for claim in tree["claim"]} == {0}


def test_without_repeats_it_says_that_it_may_be_chance(
    sides: tuple[list[Trace], list[Trace]],
) -> None:
    text = text_of(page_of((sides[0][:1], sides[1])))

    assert "one run on a side, so it may be chance" in text
    assert "One side has one recording only" in text


def test_the_page_is_the_same_each_time_and_keeps_the_rules_of_every_page(
    sides: tuple[list[Trace], list[Trace]],
) -> None:
    page = page_of(sides)
    report = trace_page(sides[0][:1], [{"verdict": "", "summary": "", "findings": []}])

    assert page == page_of(sides)
    policy = r'http-equiv="Content-Security-Policy" content="([^"]+)"'
    assert re.findall(policy, page) == re.findall(policy, report)
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)


def test_what_became_of_conditions_is_on_the_page(sides: tuple[list[Trace], list[Trace]]) -> None:
    text = text_of(page_of(sides, "wait>+20%", "wall>+9s"))

    assert "FAILED wait&gt;+20%" in text
    assert "passed wall&gt;+9s" in text


def test_other_machines_and_lost_events_are_doubts(sides: tuple[list[Trace], list[Trace]]) -> None:
    made = TraceBuilder(
        meta={"python": {"version": "3.13.0", "gil": True}, "machine": {"cores": 64}}
    )
    lock = made.add_lock(name="m")
    made.add_wait(lock, made.add_thread("a"), 0, MS)
    made.set_status(dropped_waits=3)

    text = text_of(page_of((sides[0], [parse(made.bytes())])))

    assert "Before and after differ in Python: 3.11.7 and 3.13.0." in text
    assert "Before and after differ in cores: 2 and 64." in text
    assert "Events were dropped: 0 before, 3 after." in text


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_hostile_names_stay_text(at: int) -> None:
    names = (HOSTILE[at], HOSTILE[(at + 1) % len(HOSTILE)])
    before, after = [flagship_trace(2)], [flagship_trace(2, names=names)]

    page = diff_page(before, after, (HOSTILE[at], "x"), compare(before, after))

    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "\u202e" not in page
    assert "\x00" not in page
    page.encode()


def folders(path: Path) -> list[str]:
    for name, ms in (("a", 100), ("b", 200)):
        (path / name).mkdir()
        for run in range(3):
            made = TraceBuilder(duration_ns=900 * MS)
            lock = made.add_lock(name="Catalog._lock")
            made.add_wait(lock, made.add_thread("reader"), 0, (ms + run) * MS)
            made.write(path / name / f"{run}.clt")
    return [str(path / "a"), str(path / "b")]


def test_the_command_writes_the_page_and_prints_its_path(tmp_path: Path) -> None:
    page = tmp_path / "diff.html"

    result = CliRunner().invoke(
        command, [*folders(tmp_path), "-o", str(page), "--fail-on", "wait>+20%"]
    )

    assert result.exit_code == VIOLATED
    assert result.stdout.endswith(f"{page}\n")
    text = text_of(page.read_text(encoding="utf-8"))
    assert "a → b" in text
    assert "Waiting for locks is worse" in text
    assert "FAILED wait&gt;+20%" in text


def test_json_stays_alone_on_stdout(tmp_path: Path) -> None:
    page = tmp_path / "diff.html"

    result = CliRunner().invoke(command, [*folders(tmp_path), "-o", str(page), "--json"])

    assert json.loads(result.stdout)["verdict"] == "worse"
    assert str(page) in result.stderr


def test_a_file_that_is_no_page_is_never_written_over(tmp_path: Path) -> None:
    precious = tmp_path / "precious.py"
    precious.write_text("print(1)")

    result = CliRunner().invoke(command, [*folders(tmp_path), "-o", str(precious)])

    assert result.exit_code == 2
    assert "name another file with -o" in result.stderr
    assert precious.read_text() == "print(1)"


@pytest.mark.parametrize("has_page", [True, False])
def test_open_shows_the_page_and_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_page: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)) or True)
    page = tmp_path / "diff.html"
    arguments = ["-o", str(page)] if has_page else []

    result = CliRunner().invoke(command, [*folders(tmp_path), "--open", *arguments])

    assert opened == ([page.as_uri()] if has_page else [])
    assert result.exit_code == (0 if has_page else 2)
    assert ("-o diff.html" in result.stderr) is not has_page
