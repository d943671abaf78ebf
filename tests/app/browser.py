"""Pages in Chromium, without a network; playwright drives it."""

import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")


def needs_browser(test):
    """Skip a test where there is no browser, or no package that drives it."""
    there = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on PATH")
    return pytest.mark.extra("playwright")(there(test))


def browsed(page: Path, selector: str, where: str = "") -> str:
    """The page once it has an element. where: a fragment of the URL."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"], "timeout": 30_000}
        browser = running.chromium.launch(**options)
        opened = browser.new_page()
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(page.as_uri() + where)
        opened.wait_for_selector(selector, state="attached", timeout=20_000)
        content = opened.content()
        browser.close()
    assert not [url for url in asked if not url.startswith(("file:", "blob:", "data:", "about:"))]
    return content
