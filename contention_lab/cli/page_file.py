"""The file of a page: what may be written over, and how it is shown. It makes no page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from contention_lab.cli.failure import warn

if TYPE_CHECKING:
    from pathlib import Path


def keep_other_files(page: Path) -> None:
    """Refuse to write over a file that is no HTML page.

    Raises
    ------
    click.UsageError
        There is one.
    """
    if not page.exists():
        return
    with page.open("rb") as file:
        start = file.read(64).lstrip().lower()
    if start and not start.startswith((b"<!doctype html", b"<html")):
        raise click.UsageError(
            f"{page} is not a page of ours and would be overwritten; name another file with -o"
        )


def open_page(page: Path) -> None:
    """Show the page in the browser of the desktop, where there is one."""
    open_address(page.absolute().as_uri(), page)


def open_address(address: str, shown: object = None) -> None:
    """Show what an address leads to in the browser of the desktop, where there is one.

    Parameters
    ----------
    address
        A URL.
    shown
        What to open otherwise; by default the address.
    """
    import webbrowser

    if not webbrowser.open(address):
        warn([f"no browser was found; open {shown or address} in one"])
