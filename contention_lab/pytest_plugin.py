"""The pytest plugin: `--contention`, the marker `contention` and the fixture `contention`.

`pytest --contention` records the whole session into one trace (one for each worker of
pytest-xdist) and ends with what limits it. A test with the marker or the fixture is recorded in any
case: within the session's recording if there is one, else by itself. Nothing of the package is
imported before one of the three is used.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from contention_lab.capture import Session
    from contention_lab.testing.contention import Contention
    from contention_lab.testing.recorded_part import RecordedPart

MARKER = (
    "contention(max_wait=..., max_total_wait=..., max_share=..., lock=..., "
    "no_lock_order_risk=...): fail if threads wait longer for locks in this test"
)
_DEFAULT = "contention.clt"
_SESSION: pytest.StashKey[Session] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--contention`."""
    group = parser.getgroup("contention", "lock contention (contention-lab)")
    group.addoption(
        "--contention",
        nargs="?",
        const=_DEFAULT,
        metavar="FILE.clt",
        help=f"record the locks of the session into a trace, {_DEFAULT} by default, and say at the "
        "end what limits it (write --contention=FILE.clt)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start to record, before the tests are imported: their locks are made then."""
    config.addinivalue_line("markers", MARKER)
    path = _trace_path(config)
    if path is None:
        return
    from contention_lab.capture import record

    session = record(path)
    try:
        session.start()
    except (OSError, RuntimeError) as error:
        raise pytest.UsageError(f"--contention: {error}") from error
    config.stash[_SESSION] = session


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop to record, where the summary has not done so."""
    _stop(config)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Record a test that has limits, and fail it if it keeps them not."""
    marker = item.get_closest_marker("contention")
    if marker is None:
        yield
        return
    from contention_lab.testing.limits import LimitError, Limits

    try:
        if marker.args:
            raise LimitError("limits have names: max_wait='5ms', for example")
        limits = Limits.of(marker.kwargs)
    except LimitError as error:
        pytest.fail(f"@pytest.mark.contention: {error}", pytrace=False)
    with _part() as part:
        outcome = yield
        if outcome.excinfo is not None:
            return
        trace = part.until_now()
        found = list(limits.violations(trace, part.start_ns(trace)))
    if found:
        failure = pytest.fail.Exception("lock contention: " + "\n".join(found), pytrace=False)
        outcome.force_exception(failure)


@pytest.fixture
def contention() -> Iterator[Contention]:
    """What this test has waited for so far: `contention.wait("Catalog._lock") < 0.01`."""
    from contention_lab.testing.contention import Contention

    with _part() as part:
        yield Contention(part)


def pytest_terminal_summary(
    terminalreporter: Any,
    config: pytest.Config,
) -> None:
    """Say what limits the session."""
    wanted = config.getoption("contention")
    if wanted is None or hasattr(config, "workerinput"):
        return
    _stop(config)
    from contention_lab.diagnosis import diagnose_together
    from contention_lab.report.visible_text import visible
    from contention_lab.trace import TraceError, load

    traces, paths = [], []
    for path in _written(Path(wanted), config):
        with suppress(TraceError):
            traces.append(load(path))
            paths.append(str(path))
    terminalreporter.section("lock contention")
    if not traces:
        terminalreporter.write_line(f"nothing was recorded into {wanted}")
        return
    found = diagnose_together(traces)
    terminalreporter.write_line(visible(found.summary))
    terminalreporter.write_line(f"next: contention-lab report {' '.join(paths)}")


@contextmanager
def _part() -> Iterator[RecordedPart]:
    """Have a test recorded: within a recording that there is, or by itself."""
    from contention_lab.capture import record
    from contention_lab.capture.session import active
    from contention_lab.testing.recorded_part import RecordedPart

    running = active()
    if running is not None:
        yield RecordedPart(Path(running.path), monotonic_ns())
        return
    with tempfile.TemporaryDirectory(prefix="contention-") as folder:
        path = Path(folder) / "test.clt"
        with record(path):
            yield RecordedPart(path, monotonic_ns())


def _trace_path(config: pytest.Config) -> Path | None:
    """Return where this process records; None if it does not.

    With pytest-xdist it is the workers that run tests, each beside the file that was asked for.
    """
    wanted = config.getoption("contention")
    if wanted is None:
        return None
    path = Path(wanted)
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        return path.with_suffix(f".{worker['workerid']}{path.suffix}").absolute()
    return None if _has_workers(config) else path.absolute()


def _has_workers(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "tx", None))


def _written(path: Path, config: pytest.Config) -> list[Path]:
    """Return the traces of this session."""
    if not _has_workers(config):
        return [path]
    return sorted(path.parent.glob(f"{path.stem}.gw*{path.suffix}"))


def _stop(config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is not None:
        del config.stash[_SESSION]
        session.stop()
