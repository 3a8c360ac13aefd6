"""Differences that recording may make to CPython's tests, each with its reason.

The key ends a test method's full name, the value says why no user could notice.
"""

from __future__ import annotations

ALLOWED: dict[str, str] = {}


def reason(test: str) -> str:
    """Return why this test may end differently, or nothing."""
    return next((why for end, why in ALLOWED.items() if test.endswith(f".{end}")), "")
