"""What can go wrong with a sweep through no fault of this package; each says it in one line."""

from __future__ import annotations


class SweepError(Exception):
    """A sweep cannot be run or finished: what, why, what to do, in one line."""


class ScenarioError(SweepError):
    """A scenario does not exist, or its file or its settings are not valid."""
