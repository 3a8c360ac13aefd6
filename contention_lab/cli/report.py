"""Make one offline HTML page that explains one or more traces.

Of several processes, it also shows the locks that they share, all processes together.
The page is written beside the first trace unless `-o` says otherwise; its path is printed. An
earlier page is replaced, a file that is not a page never. It shows the lines of source around the
places it names, from files that have not been written since the recording.

Of a sweep that is over, name its folder (reports/NAME): its page is made again.

With --watch the one argument is the folder of a sweep that runs (reports/NAME of `contention-lab
run NAME`): its page is written again as results arrive, every ten seconds at most and with the
lowest priority, until the sweep ends. Reload it in the browser; it never does so by itself.
"""

from __future__ import annotations

from pathlib import Path

import click

from contention_lab.cli.failure import loaded, reported
from contention_lab.cli.page_file import keep_other_files, open_page


@click.command(name="report", help=__doc__)
@click.argument(
    "paths", metavar="FILE.clt...|FOLDER", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the page.  [default: the first trace, with .html]",
)
@click.option(
    "--no-source", is_flag=True, help="Leave out the lines of source around the places it names."
)
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@click.option("--watch", "watching", is_flag=True, help="Follow a sweep that runs, see above.")
def command(
    paths: tuple[Path, ...], output: Path | None, no_source: bool, show: bool, watching: bool
) -> None:
    """Write the page."""
    if watching:
        _watch(paths, output, source=not no_source, show=show)
        return
    if len(paths) == 1 and paths[0].is_dir():
        _finished(paths[0], output, source=not no_source, show=show)
        return
    from contention_lab.analysis.processes import (
        across_processes,
        of_one_run,
        with_sites_of_makers,
    )
    from contention_lab.diagnosis import diagnose, diagnose_together
    from contention_lab.report import trace_page
    from contention_lab.trace import TraceError

    page = paths[0].with_suffix(".html") if output is None else output
    with reported(TraceError):
        traces = with_sites_of_makers(loaded(paths))
        together = diagnose_together(traces)
        shared = across_processes(of_one_run(traces)[0])
        if shared is not None:
            traces.insert(0, shared)
        alone = [together] if len(traces) == 1 else map(diagnose, traces)
        diagnoses = [diagnosis.to_json() for diagnosis in alone]
        keep_other_files(page)
        text = trace_page(traces, diagnoses, source=not no_source)
        page.write_text(text, encoding="utf-8")
    _told(together.summary, page, show=show)


def _finished(folder: Path, output: Path | None, *, source: bool, show: bool) -> None:
    from contention_lab.sweep.errors import SweepError
    from contention_lab.sweep.finished import finished_page

    page = folder / "report.html" if output is None else output
    with reported(SweepError):
        keep_other_files(page)
        summary, text = finished_page(folder, source=source)
        page.write_text(text, encoding="utf-8")
    _told(summary, page, show=show)


def _told(summary: str, page: Path, *, show: bool) -> None:
    from contention_lab.report.visible_text import visible

    click.echo(visible(summary), err=True)
    click.echo(page)
    if show:
        open_page(page)


def _watch(paths: tuple[Path, ...], output: Path | None, *, source: bool, show: bool) -> None:
    from contention_lab.cli.watching import watch

    if len(paths) > 1 or paths[0].is_file():
        raise click.UsageError("--watch: name the folder of one sweep, such as reports/NAME")
    if output is not None:
        raise click.UsageError("--watch: writes the page of the sweep itself; leave out -o")
    watch(paths[0], source=source, show=show)
