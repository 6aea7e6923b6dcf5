"""The browsers that pages are tested in, as Debian ships them, driven by Playwright; Firefox through a relay."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.explorer import ARGUMENTS

RELAY = Path(__file__).with_name("firefox_relay.py")
PACKAGES = {"chromium": "chromium", "firefox": "firefox-esr"}


@contextmanager
def browsers(folder: Path) -> Iterator[Callable[[str], Browser]]:
    """A function that opens a browser once; it skips the test where the browser is not installed."""
    with sync_playwright() as playwright:
        found: dict[str, Browser] = {}

        def opened(name: str) -> Browser:
            path = shutil.which(PACKAGES[name])
            if path is None:
                pytest.skip(f"no {name} (apt-get install {PACKAGES[name]})")
            if name not in found and name == "firefox":
                starter = folder / "firefox"
                words = shlex.join([sys.executable, str(RELAY), path])
                starter.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
                starter.chmod(0o755)
                found[name] = playwright.firefox.launch(executable_path=starter, channel="moz-firefox")
            elif name not in found:
                found[name] = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
            return found[name]

        yield opened
        for browser in found.values():
            browser.close()


@contextmanager
def pages(browser: Browser) -> Iterator[tuple[Callable[..., Page], list[str]]]:
    """A function that makes an empty page, and what went wrong on such pages or stands on their consoles."""
    contexts, wrong = [], []

    def made(**options: object) -> Page:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text))
        return page

    yield made, wrong
    for context in contexts:
        context.close()
