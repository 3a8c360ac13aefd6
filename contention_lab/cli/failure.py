"""How a failure is said on the command line: one line, and where it makes sense what to type next.

It knows nothing of what failed: the parts of the package raise their own one-line exceptions, and
`reported` turns the kinds that a subcommand expects into a message and exit status 1. An exception
nobody expected keeps its traceback, since that is a fault of ours.
"""

from __future__ import annotations

import errno
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from contention_lab.trace import Trace

PROGRAM: Final = "contention-lab"
ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that ask a program to end."""

_WARNINGS_SHOWN: Final = 3
_WRONG_PATH: Final = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR)


@contextmanager
def reported(*kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of `kinds`, and failing files, into one line and exit status 1.

    Parameters
    ----------
    kinds
        Exceptions whose text is already what, why and what to do.

    Raises
    ------
    click.ClickException
        In place of them.
    """
    try:
        yield
    except kinds as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        subject = f"{error.filename}: " if error.filename is not None else ""
        advice = "; check the path" if error.errno in _WRONG_PATH else ""
        raise click.ClickException(f"{subject}{error.strerror or error}{advice}") from error


@contextmanager
def ended_by_signals() -> Iterator[Callable[[], bool]]:
    """Let signals that end a program end it as an exception does: what is open is closed.

    Else a helper process would go on without it. The exit status is the shell's, 128 and the
    signal, also where the exception was passed over, as in a destructor, or became another, as in
    a module that was being imported.

    Yields
    ------
    callable
        Whether to go on; for loops to ask.
    """
    asked: list[int] = []

    def end(number: int, _: object) -> None:
        asked.append(number)
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, end) for one in ENDING}
    try:
        yield lambda: not asked
    except Exception:
        if not asked:
            raise
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    if asked:
        raise SystemExit(128 + asked[0])


def loaded(paths: Sequence[Path]) -> list[Trace]:
    """Load traces; of several, those that cannot be read are left out with a warning.

    Raises
    ------
    TraceError
        None can be read.
    """
    from contention_lab.trace import TraceError, load

    traces, failures = [], []
    for path in paths:
        try:
            traces.append(load(path))
        except TraceError as error:
            failures.append(error)
    if not traces:
        raise failures[0]
    warn([f"{failure}; the others are used" for failure in failures])
    return traces


def warn(lines: Sequence[str]) -> None:
    """Print warnings to stderr, the first few in full."""
    for line in lines[:_WARNINGS_SHOWN]:
        click.echo(f"warning: {line}", err=True)
    if len(lines) > _WARNINGS_SHOWN:
        click.echo(f"warning: and {len(lines) - _WARNINGS_SHOWN} more", err=True)


def complaint(error: click.ClickException) -> str:
    """Return the line that says what went wrong."""
    message = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError):
        return f"{PROGRAM}: {message}"
    command = error.ctx.command_path if error.ctx is not None else PROGRAM
    return f"{PROGRAM}: {message.rstrip('.')} (try: {command} --help)"
