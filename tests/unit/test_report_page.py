"""The page as text: what it says, what it escapes, what it may do."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from report_case import CLIENTS, HOSTILE, flagship_trace, sweep_result, sweep_traces

from contention_lab.report import sweep_page, trace_page
from contention_lab.report.conditions import moment_said
from contention_lab.report.document import listed, program, prose, style_sheet
from contention_lab.trace import Level, TraceBuilder, parse

DIAGNOSIS = {
    "verdict": "spin-collapse",
    "summary": "7 threads spin while GlobalClient.backward holds “autodiff server”.",
    "findings": [
        {
            "kind": "spin-collapse",
            "severity": 0.875,
            "summary": "The worst.",
            "victims": [],
            "culprits": [
                {
                    "site": {"file": "/src/tape.py", "line": 7, "function": "Tape.run"},
                    "acquired": {
                        "file": "/src/server.py",
                        "line": 40,
                        "function": "Server.backward",
                    },
                    "share": 0.93,
                    "thread_s": 1.86,
                }
            ],
            "evidence": {"wait_s": 2.0, "acquires": 70, "contended": 60, "stretch": 3.0},
            "remedies": [
                {
                    "text": "Run the tape outside the lock.",
                    "speedup": None,
                    "speedup_low": 1.0,
                    "speedup_high": 8.0,
                }
            ],
        },
        {"summary": "`pool` is held for long.", "remedies": []},
    ],
}
VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [key for key, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute is there twice in <{tag}>"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


@pytest.fixture(scope="module")
def text() -> str:
    return sweep_page(sweep_result(), sweep_traces())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_first_heading_is_the_verdict(page: Page) -> None:
    (heading,) = page.texts["h1"]

    assert heading == sweep_result()["verdict"]["lines"][0]


def test_the_policy_allows_the_styles_and_the_script_of_the_page_and_nothing_else(
    text: str, page: Page
) -> None:
    (policy,) = [
        str(attrs["content"]) for tag, attrs in page.tags if tag == "meta" and "http-equiv" in attrs
    ]

    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        (body,) = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_nothing_is_loaded_and_nothing_is_styled_or_run_inline(page: Page) -> None:
    assert page.attributes("src") == []
    assert page.attributes("style") == []
    assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on")]
    assert all(link.startswith(("#", "data:image/svg+xml,")) for link in page.attributes("href"))


def test_ids_are_unique_and_references_lead_somewhere(page: Page) -> None:
    ids = page.attributes("id")

    assert len(ids) == len(set(ids))
    wanted = {link[1:] for link in page.attributes("href") if link.startswith("#")}
    for name in ("aria-labelledby", "aria-describedby", "aria-controls", "for"):
        wanted |= {part for value in page.attributes(name) for part in value.split()}
    assert wanted <= set(ids)


def test_the_same_input_gives_the_same_page(text: str) -> None:
    assert sweep_page(sweep_result(), sweep_traces()) == text


def test_the_page_without_data_is_small() -> None:
    nothing = {"verdict": "healthy", "summary": "Nothing limits it.", "findings": []}
    text = trace_page([parse(TraceBuilder().bytes(), "empty.clt")], [nothing])

    assert len(style_sheet()) + len(program()) < 111_000
    assert len(text.encode()) < 150_000


def test_traced_figures_are_said_to_be_traced_and_intervals_to_be_ranges(text: str) -> None:
    assert "Line: median of 3 runs. Upright bar: minimum to maximum. Dots: single runs." in text
    assert "Traced: from the one repeat of each point that ran with recording on." in text
    assert "3 untraced and 1 traced run for each point" in text
    assert "2 cores" in text


def test_the_plots_are_described_in_words(page: Page) -> None:
    told = " ".join(page.texts["desc"])

    assert "560\N{NARROW NO-BREAK SPACE}ms at 1" in told
    assert "12.7\N{NARROW NO-BREAK SPACE}s at 8" in told
    assert "spinning 9" in told


def test_the_command_names_every_parameter(page: Page) -> None:
    command = next(body for body in page.texts["code"] if body.startswith("contention-lab run"))

    assert command == (
        "contention-lab run autodiff-global-spinlock --threads 1,2,4,8,16,32 --repeats 3 "
        "--set trainings=32 --set steps=20 --set layers=128,256,256,10 --set lr=0.1"
    )


def test_the_culprit_and_the_victims_are_in_the_tables(text: str) -> None:
    tables = text[text.index('<table class="sortable matrix">') :]

    assert "GlobalClient.backward" in tables
    assert "GlobalClient.register" in tables


def test_hostile_names_stay_text() -> None:
    result = sweep_result()
    result["scenario"]["title"] = result["scenario"]["story"] = HOSTILE[0]
    result["scenario"]["parameters"] = {HOSTILE[0]: HOSTILE[2], "b": HOSTILE[3]}
    result["machine"]["processor"] = HOSTILE[5]
    result["verdict"]["lines"] = list(HOSTILE)
    result["variants"] = [HOSTILE[0]]
    for entry in (*result["points"], *result["fits"], *result["bounds"]):
        entry["variant"] = HOSTILE[0]
    traces = {
        (HOSTILE[0], n): flagship_trace(n, names=(HOSTILE[n % 6], HOSTILE[(n + 1) % 6]))
        for n in range(2, 8)
    }

    text = sweep_page(result, traces)

    page = Page(text)
    assert "img" not in {tag for tag, _ in page.tags}
    assert text.count("<script") == text.count("</script>") == 2
    text.encode()
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "x" * 5000 not in text
    assert "👩‍💻" in text
    (body,) = page.texts["script"][:1]
    assert HOSTILE[0] in {row[0] for row in json.loads(body)["frames"]}


def test_several_variants_share_one_plot_and_one_table() -> None:
    variants = tuple(CLIENTS)
    text = sweep_page(sweep_result(variants), sweep_traces(variants, (1, 8)))

    page = Page(text)
    assert "By variant" in page.texts["h3"]
    assert len([tag for tag, _ in page.tags if tag == "optgroup"]) == 7
    assert "No trace could be read of 28 of the 42 points." in text
    told = " ".join(page.texts["desc"])
    assert all(f"{variant}: median" in told for variant in variants)


def test_a_sweep_without_traces_still_has_its_plots() -> None:
    text = sweep_page(sweep_result(), {})

    Page(text)
    assert "No trace of this sweep could be read" in text
    assert 'id="times-wide-title"' in text


def test_threads_that_met_no_lock_are_not_shown_as_time() -> None:
    variants = ("global-spinlock", "thread-local")
    result = sweep_result(variants)
    for point in result["points"]:
        if point["variant"] == "thread-local":
            point["thread_s"] = dict.fromkeys(point["thread_s"], 0.0)

    drawn = Page(sweep_page(result, {})).texts["text"]
    alone = sweep_result(("thread-local",))
    for point in alone["points"]:
        point["thread_s"] = dict.fromkeys(point["thread_s"], 0.0)

    assert " met no recorded lock" in drawn
    assert "No thread of these runs met a recorded lock" in sweep_page(alone, {})


def test_a_sweep_that_was_cut_short_says_so() -> None:
    result = sweep_result()
    result["complete"] = False
    result["missing"] = [f"global-spinlock at {n} threads: not run" for n in range(6)]
    result["points"] = result["points"][:1]
    result["points"][0]["wall_s"]["runs"] = [0.56]
    result["verdict"] = None

    text = sweep_page(result, {})

    Page(text)
    assert "This sweep is not complete" in text
    assert "global-spinlock at 0 threads: not run" in text
    assert "2 more runs are missing." in text
    assert "One run for each point, so there is no interval." in text
    assert "No verdict was reached." in text


def test_a_busy_machine_is_told_at_the_top() -> None:
    result = sweep_result()
    result["machine"]["load_before"]["others_share"] = 0.4

    head = sweep_page(result, {}).split("<h2", maxsplit=1)[0]

    assert "Other programs used 40\N{NARROW NO-BREAK SPACE}% of all CPUs before the start." in head


def test_the_page_of_a_trace_has_its_verdict_threads_and_views() -> None:
    text = trace_page([flagship_trace(8)], [DIAGNOSIS])

    page = Page(text)
    assert page.texts["h1"] == [DIAGNOSIS["summary"]]
    assert "Run the tape outside the lock." in text
    assert "<code>pool</code> is held for long." in text
    assert "<code>Tape.run</code>" in text
    assert "took the lock in <code>Server.backward</code> (src/server.py:40)" in text
    assert "at most 8.00×" in text
    assert "waited 2.0 s · contended 60 of 70 acquires · stretch 3.0" in text
    assert "worker-3" in " ".join(page.texts["text"])
    assert "run-8.clt" in text


def test_the_page_of_several_traces_lets_one_choose() -> None:
    text = trace_page([flagship_trace(2), flagship_trace(8)], [DIAGNOSIS, DIAGNOSIS])

    assert text.count("<option") == 2 + 2 * 2  # the run shown, and two to compare
    assert "run-2.clt and 1 more" in text
    assert f"run-2.clt: {DIAGNOSIS['summary']}" in text


@pytest.mark.parametrize("level", Level)
def test_an_empty_recording_still_makes_a_page(level: Level) -> None:
    text = trace_page([parse(TraceBuilder(level=level).bytes())], [{"summary": "Nothing."}])

    Page(text)
    assert "No lock was recorded in this run." in text
    assert "No thread of this run met a lock." in text


def test_a_trace_page_needs_one_diagnosis_for_each_trace() -> None:
    with pytest.raises(ValueError, match="one diagnosis for each"):
        trace_page([flagship_trace(2)], [])


def test_names_in_sentences_are_set_as_code_and_escaped() -> None:
    assert prose("`<b>` holds `x`") == "<code>&lt;b&gt;</code> holds <code>x</code>"
    assert prose("an odd ` stays") == "an odd ` stays"


def test_a_moment_is_told_to_the_minute() -> None:
    assert moment_said("2026-11-30T06:40:12.5+00:00") == "2026-11-30 06:40 UTC"
    assert moment_said("yesterday") == "yesterday"
    assert moment_said("") == ""


def test_words_are_listed_as_people_list_them() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip
