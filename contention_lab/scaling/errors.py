"""What scaling refuses, each as one line: what, why, what to do."""

from __future__ import annotations


class ScalingError(Exception):
    """Numbers that cannot be used."""


class TooFewPointsError(ScalingError):
    """Fewer thread counts than a law needs; bounds are all that can be said."""


class AmbiguousWorkError(ScalingError):
    """What was measured is not said, and the possible readings would give different answers."""
