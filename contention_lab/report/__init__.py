"""HTML reports: one offline file that shows and explains a sweep or a recording.

It draws what `analysis`, `scaling` and `diagnosis` found and concludes nothing itself. A page makes
no network request, needs no script to be read, and is the same for the same input.
"""

from contention_lab.report.command_report import command_page
from contention_lab.report.diff_report import diff_page
from contention_lab.report.sweep_report import sweep_page
from contention_lab.report.trace_report import trace_page

__all__ = ["command_page", "diff_page", "sweep_page", "trace_page"]
