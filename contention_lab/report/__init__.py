"""HTML reports: one offline file that shows and explains a sweep or a recording.

It draws what `analysis`, `scaling` and `diagnosis` found and concludes nothing itself. A page makes
no network request, needs no script to be read, and is the same for the same input.

A page is imported when first used: what only writes numbers as pages do has no need of Matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contention_lab.report.command_report import command_page
    from contention_lab.report.diff_report import diff_page
    from contention_lab.report.sweep_report import sweep_page
    from contention_lab.report.trace_report import trace_page

__all__ = ["command_page", "diff_page", "sweep_page", "trace_page"]


def __getattr__(name: str) -> Any:
    """Import a page when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    page = import_module(f"{__name__}.{name.removesuffix('_page')}_report")
    return getattr(page, name)
