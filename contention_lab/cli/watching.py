"""The page of a sweep, rewritten while the sweep runs in another process.

A page is made with the lowest priority and at most every few seconds, since it takes CPU time from
the very runs that are being measured. The last page is the sweep's own, and never written over.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.page_file import keep_other_files, open_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POLL_S: Final = 0.5
PAUSE_S: Final = 10.0
"""Between two pages."""
PAGE_NAME: Final = "report.html"


def watch(
    folder: Path,
    *,
    source: bool = True,
    show: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Rewrite the page of a sweep until the sweep ends, or Ctrl-C.

    Parameters
    ----------
    folder
        Where the sweep writes.
    source
        Show lines of the program's source.
    show
        Open the first page in a browser.
    sleep
        Passes time.

    Raises
    ------
    click.ClickException
        No sweep writes there.
    """
    from contention_lab.sweep.conclusion import page_so_far
    from contention_lab.sweep.errors import SweepError
    from contention_lab.sweep.under_way import is_running, under_way

    page = folder / PAGE_NAME
    with reported(SweepError):
        keep_other_files(page)
        if not is_running(folder):
            raise SweepError(
                f"{folder}: the sweep there is over; its page is {page}, and contention-lab run "
                "starts another"
            )
        click.echo(f"watching {folder}; Ctrl-C ends it, the sweep goes on", err=True)
        os.nice(19)
        runs, rest_s = 0, 0.0
        try:
            while is_running(folder):
                seen = under_way(folder)
                if seen.runs > runs and rest_s <= 0:
                    text = page_so_far(seen.scenario, seen.outcome, folder, source=source)
                    if text is not None and is_running(folder):
                        _put(page, text)
                        click.echo(f"{seen.runs} runs: reload {page}", err=True)
                        if show:
                            open_page(page)
                            show = False
                        runs, rest_s = seen.runs, PAUSE_S
                sleep(POLL_S)
                rest_s -= POLL_S
        except KeyboardInterrupt:
            click.echo("no longer watching; the sweep goes on", err=True)
            return
    click.echo("the sweep has ended, and writes its own page now", err=True)
    click.echo(page)


def _put(page: Path, text: str) -> None:
    """Replace the page at once: a browser never reads half of it."""
    half = page.with_name(f".{page.name}.part")
    half.write_text(text, encoding="utf-8")
    half.replace(page)
