"""Sessions of pytest with the plugin, each in a process of its own."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

SHOP = """
import threading, time

class Catalog:
    def __init__(self):
        self._lock = threading.Lock()
        self.taken = threading.Event()

    def refresh(self, seconds):
        with self._lock:
            self.taken.set()
            time.sleep(seconds)

    def get(self):
        self.taken.wait()
        with self._lock:
            pass

def run(seconds):
    catalog = Catalog()
    threads = [
        threading.Thread(target=catalog.refresh, args=(seconds,)),
        threading.Thread(target=catalog.get),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run tests that can import `shop`, in a session of their own."""
    pytester.makepyfile(shop=SHOP, test_shop=tests)
    installed = any(one.name == "contention" for one in entry_points(group="pytest11"))
    loaded = () if installed else ("-p", "contention_lab.pytest_plugin")
    return pytester.runpytest_subprocess(*loaded, "-p", "no:cacheprovider", *options)


def test_a_test_that_waits_too_long_fails_with_lock_victim_and_culprit(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
        import pytest, shop

        @pytest.mark.contention(max_wait="200ms")
        def test_slow():
            shop.run(0.5)

        @pytest.mark.contention(max_wait="200ms")
        def test_quick():
            shop.run(0)
        """,
    )

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*lock contention: `Catalog.get` (shop.py:*) waited * ms for `Catalog._lock` "
            "(made at shop.py:*) while `Catalog.refresh` (shop.py:*) held it; "
            "at most 200 ms is allowed*"
        ]
    )


def test_limits_are_of_the_test_and_not_of_the_session(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    trace = tmp_path / "session.clt"
    result = run(
        pytester,
        """
        import pytest, shop

        def test_slow():
            shop.run(0.5)

        @pytest.mark.contention(max_wait="200ms", max_total_wait=0.2)
        def test_quick():
            shop.run(0)

        @pytest.mark.contention(max_total_wait=0.2, lock="Catalog")
        def test_slow_again():
            shop.run(0.5)
        """,
        f"--contention={trace}",
    )

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*threads waited * for 'Catalog' in all; at most 200 ms is allowed*"]
    )
    result.stdout.fnmatch_lines(["*= lock contention =*", f"next: contention-lab report {trace}"])
    recorded = cl.load(trace)
    assert recorded.complete
    assert "Catalog._lock" in {lock.label for lock in recorded.locks.values()}


def test_the_fixture_answers_within_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import shop

        def test_figures(contention):
            assert contention.wait() == 0
            shop.run(0.2)
            assert 0.1 < contention.wait("Catalog._lock") < 2
            assert contention.max_wait() == contention.wait("catalog")
            assert contention.wait("no such lock") == 0
            assert contention.held("Catalog._lock") > 0.1
            assert 0 < contention.share("Catalog._lock") <= 1
            assert "Catalog.refresh" in str(contention.longest())
            assert contention.lock_order_risks() == []
        """,
    )

    result.assert_outcomes(passed=1)


def test_an_order_of_locks_that_can_hang_fails(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest, threading

        def both(first, second):
            with first:
                with second:
                    pass

        @pytest.mark.contention(no_lock_order_risk=True)
        def test_orders():
            accounts = threading.Lock()
            journal = threading.Lock()
            for order in ((accounts, journal), (journal, accounts)):
                thread = threading.Thread(target=both, args=order)
                thread.start()
                thread.join()
        """,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*orders that can end in a deadlock: `*` is taken while `*"])


MISTAKES = {
    "max_waits='5ms'": "*no limit 'max_waits'; choose from max_wait, *",
    "max_wait='5 lightyears'": "*give seconds, or a text such as '5ms'*",
    "max_share=7": "*give a share from 0 to 1*",
    "'5ms'": "*limits have names*",
    "lock='x'": "*nothing is limited*",
}


def test_a_mistake_in_the_marker_is_said(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        "import pytest\n"
        + "".join(
            f"@pytest.mark.contention({arguments})\ndef test_{number}(): pass\n"
            for number, arguments in enumerate(MISTAKES)
        ),
    )

    result.assert_outcomes(failed=len(MISTAKES))
    result.stdout.fnmatch_lines([*MISTAKES.values()])


def test_a_failing_test_keeps_its_own_failure(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest, shop

        @pytest.mark.contention(max_wait="1ms")
        def test_wrong():
            shop.run(0.1)
            assert 1 == 2
        """,
    )

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*lock contention:*")


def test_nothing_is_imported_where_nothing_is_asked_for(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import sys, threading, _thread

        def test_it():
            assert not [name for name in sys.modules if name.startswith("contention_lab.")
                        and name != "contention_lab.pytest_plugin"]
            assert "numpy" not in sys.modules
            assert threading.Lock in (_thread.lock if hasattr(_thread, "lock") else None,
                                      _thread.allocate_lock)
        """,
    )

    result.assert_outcomes(passed=1)


def test_workers_record_beside_the_file(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    result = run(
        pytester,
        """
        import pytest, shop

        @pytest.mark.contention(max_wait="200ms")
        @pytest.mark.parametrize("seconds", [0, 0, 0.5, 0])
        def test_it(seconds):
            shop.run(seconds)
        """,
        "-n2",
        f"--contention={tmp_path / 'all.clt'}",
    )

    result.assert_outcomes(passed=3, failed=1)
    assert sorted(path.name for path in tmp_path.glob("*.clt")) == ["all.gw0.clt", "all.gw1.clt"]
    result.stdout.fnmatch_lines(["next: contention-lab report *all.gw0.clt *all.gw1.clt"])


def test_a_file_that_is_no_trace_is_not_replaced(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("notes.txt").write_text("mine")

    result = run(pytester, "def test_it(): pass", "--contention=notes.txt")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert pytester.path.joinpath("notes.txt").read_text() == "mine"
