"""Differences that recording may make to CPython's tests, and tests left out, each with a reason.

The key ends a test method's full name; the value says why no user could notice, or why the test
tells nothing.
"""

from __future__ import annotations

ALLOWED: dict[str, str] = {}
LEFT_OUT: dict[str, str] = {
    "ThreadingExceptionTests.test_print_exception_gh_102056": (
        "may loop for ever as it is: an interrupt ends one of its countless recursions"
    ),
    "WithThreadsTestPool.test_terminate": (
        "sleeps five minutes as it is, if a worker takes its first task in time"
    ),
}


def reason(test: str) -> str:
    """Return why this test may end differently, or nothing."""
    return next((why for end, why in ALLOWED.items() if test.endswith(f".{end}")), "")


def is_left_out(test: str) -> bool:
    """Return whether this test is not run at all."""
    return any(test.endswith(f".{end}") for end in LEFT_OUT)
