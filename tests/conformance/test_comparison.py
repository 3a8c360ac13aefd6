"""Which differences are believed."""

from __future__ import annotations

import comparison
import pytest


class Scripted:
    """Tests that end as written: for each run without us and recorded, in turn, `name=outcome`."""

    label = "scripted"

    def __init__(self, *runs: str) -> None:
        self.runs = iter(runs)
        self.asked: list[list[str]] = []

    def run(self, names: list[str], *, recorded: bool) -> comparison.Run:
        if recorded:
            self.asked.append(names)
        outcomes = {}
        status = 0
        for word in next(self.runs).split():
            name, _, outcome = word.partition("=")
            if name == "status":
                status = int(outcome)
            elif not names or name in names:
                outcomes[name] = outcome.replace("_", " "), ""
        ending = "by itself" if status in (0, 1) else f"with status {status}"
        outcomes[comparison.ENDING] = ending, ""
        return comparison.Run(outcomes, {}, status, 0.0, "")

    def can_run_alone(self, test: str) -> bool:
        return test in ("a", "b")


@pytest.mark.parametrize(
    ("runs", "good", "asked"),
    [
        (["a=ok b=failed", "a=ok b=failed"], True, [[]]),
        (["a=ok", "a=failed"] * 3, False, [[], ["a"], ["a"]]),
        (["a=ok", "a=failed", *["a=ok", "a=ok"] * 3], True, [[], ["a"], ["a"], []]),
        (["a=ok", "a=failed", *["a=ok", "a=ok"] * 2, "a=ok", "a=failed"], False, None),
        (["a=ok", "a=failed", "a=failed", "a=failed", "a=ok", "a=failed"], True, None),
        (["a=failed b=ok", "a=ok b=ok"] * 3, False, [[], ["a"], ["a"]]),
        (["a=ok b=ok", "a=did_not_finish status=-9"] * 3, False, None),
        (["a=ok", "a=ok status=-11"] * 3, False, [[], [], []]),
        (["a=ok", "a=ok status=-11", *["a=ok"] * 4], True, [[], [], []]),
        (["a=ok SETUP=ok", "a=ok SETUP=error"] * 3, False, [[], [], []]),
        (["status=5", "status=5"], False, [[]]),
        (["", ""], False, [[]]),
        (["a=error b=failed", "a=error b=failed"], False, [[]]),
        (["a=did_not_finish status=-9", "a=did_not_finish status=-9"], False, [[]]),
    ],
)
def test_a_difference_is_believed_if_it_comes_again_and_only_when_recorded(
    runs: list[str], good: bool, asked: list[list[str]] | None
) -> None:
    tests = Scripted(*runs)

    assert comparison.judge(tests, lambda _: "") is good
    assert asked is None or tests.asked == asked


def test_a_difference_with_a_reason_is_allowed_and_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tests = Scripted(*["a=ok", "a=failed"] * 3)

    assert comparison.judge(tests, lambda test: f"why {test}")
    assert "because:  why a" in capsys.readouterr().out
