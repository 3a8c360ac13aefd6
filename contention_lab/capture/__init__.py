"""Recording: sessions of a running program."""

from contention_lab.capture.session import Session, Summary, record

__all__ = ["Session", "Summary", "record"]
