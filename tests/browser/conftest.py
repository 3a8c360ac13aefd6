"""A real Chromium for the pages, and a watch over everything it complains about.

Without Playwright or Chromium the tests here are skipped, and say which of the two is missing.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))  # report_case

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
READY = "html.ready, html:not(.scripted)"
"""All that a page draws has been drawn, or it has no script."""
Opener = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    program = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if program is None:
        pytest.skip("no Chromium found: install the package chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Opener]:
    """Open the text of a page; the test fails if the page complains or asks for anything."""
    contexts: list[Any] = []
    complaints: list[str] = []
    requests: list[str] = []

    def opened(
        text: str, *, width: int = 1280, height: int = 800, fragment: str = "", **options: Any
    ) -> Any:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri() + fragment)
        page.wait_for_selector(READY, state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file://", "data:"))] == []
    assert len([url for url in requests if url.startswith("file://")]) == len(contexts)
