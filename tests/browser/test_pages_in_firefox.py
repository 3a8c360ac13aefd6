"""The pages in Debian's Firefox, if it is there: every view is drawn, and nothing complained of.

Playwright drives only a Firefox of its own; this speaks WebDriver BiDi, as every Firefox does.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from report_case import HOSTILE, flagship_trace, sweep_result, sweep_traces

from contention_lab.comparison import compare
from contention_lab.diagnosis import diagnose
from contention_lab.report import diff_page, sweep_page, trace_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIREFOX_NAMES = ("firefox-esr", "firefox")
LATEST_S = 60
COLOURS = """(section) => {
  const canvas = document.querySelector(`${section} canvas`);
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


class Firefox:
    """A running Firefox with one window, and everything it complains about or asks for."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.window = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=LATEST_S))
            if message.get("id") == number:
                assert message["type"] == "success", message
                return message["result"]
            if message.get("method") == "log.entryAdded":
                self.complaints.append(str(message["params"].get("text")))
            elif message.get("method") == "network.beforeRequestSent":
                self.requests.append(message["params"]["request"]["url"])

    def open(self, url: str) -> None:
        self.call("browsingContext.navigate", context=self.window, url=url, wait="complete")

    def value(self, function: str, *arguments: str) -> Any:
        """Return what a function gives that the page calls with some texts."""
        found = self.call(
            "script.callFunction",
            functionDeclaration=function,
            arguments=[{"type": "string", "value": one} for one in arguments],
            target={"context": self.window},
            awaitPromise=True,
        )
        assert found["type"] == "success", found
        return found["result"].get("value")


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    client = pytest.importorskip(
        "websockets.sync.client", reason="websockets is not installed: pip install websockets"
    )
    program = next(filter(None, map(shutil.which, FIREFOX_NAMES)), None)
    if program is None:
        pytest.skip("no Firefox found: install the package firefox-esr")
    profile = tmp_path_factory.mktemp("firefox")
    arguments = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
    with subprocess.Popen(
        [program, *arguments, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            listening = (re.search(r"BiDi listening on (ws://\S+)", one) for one in process.stderr)
            found = next(filter(None, listening), None)
            assert found is not None, "Firefox ended before it could be spoken to"
            address = f"{found[1]}/session"
            with client.connect(address, max_size=None, open_timeout=LATEST_S) as connection:
                yield Firefox(connection)
        finally:
            process.terminate()
            process.communicate(timeout=LATEST_S)


def of_sweep() -> str:
    return sweep_page(sweep_result(), sweep_traces())


def of_trace() -> str:
    trace = flagship_trace(8, names=(HOSTILE[0], HOSTILE[1]))
    return trace_page([trace], [diagnose(trace).to_json()])


def of_difference() -> str:
    before, after = [flagship_trace(2)], [flagship_trace(8, names=(HOSTILE[0], HOSTILE[4]))]
    return diff_page(before, after, ("before", HOSTILE[2]), compare(before, after))


@pytest.mark.parametrize(
    ("made", "sections"),
    [
        (of_sweep, ("#timeline", "#flame", "#difference")),
        (of_trace, ("#timeline", "#flame")),
        (of_difference, ("#difference",)),
    ],
)
def test_firefox_draws_every_view_and_complains_of_nothing(
    firefox: Firefox, tmp_path: Path, made: Callable[[], str], sections: tuple[str, ...]
) -> None:
    page = tmp_path / "page.html"
    page.write_text(made(), encoding="utf-8")
    firefox.complaints.clear()
    firefox.requests.clear()

    firefox.open(page.as_uri())
    for section in sections:
        assert firefox.value(COLOURS, section) > 4, section
        firefox.value(
            """(section) => {
              for (const tab of document.querySelectorAll(`${section} [role=tab]`)) tab.click();
              document.querySelector(`${section} canvas`).dispatchEvent(
                new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
            }""",
            section,
        )
    told = firefox.value(
        "(section) => document.querySelector(`${section} .readout`).innerText", sections[-1]
    )

    assert told
    assert firefox.value("() => document.querySelectorAll('img').length") == 0
    assert firefox.complaints == []
    assert [url for url in firefox.requests if not url.startswith(("file:", "data:"))] == []


def test_firefox_would_be_heard(firefox: Firefox, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
        "<title>x</title><script>1</script>"
    )
    firefox.complaints.clear()

    firefox.open(page.as_uri())
    firefox.value("() => { console.error('heard'); setTimeout(() => { throw Error('thrown'); }); }")
    firefox.value("() => new Promise((done) => setTimeout(done, 50))")

    assert "heard" in firefox.complaints
    assert any("thrown" in one for one in firefox.complaints)
