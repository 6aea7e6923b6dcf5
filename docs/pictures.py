"""Make docs/images of a run's page and of the site: python -m docs.pictures reports/atlas.html site/html

They show the page's overview and the question that its button opens, and three pages of the site, 1440 and 390 pixels
wide, light and dark. Pages of the site that axe finds a fault of are refused.
"""

import io
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parent / "images"
WIDE, LOW, NARROW = (1440, 900), (1440, 500), (390, 844)
GAP, COLOURS = 10, 256
SITE = ("", "findings/", "glossary/")  # the first is shown wide too


def open_page(browser: Browser, scheme: str) -> Page:
    viewport = dict(zip(("width", "height"), WIDE, strict=True))
    return browser.new_page(color_scheme=scheme, reduced_motion="reduce", viewport=viewport)


def take_site(browser: Browser, root: str, scheme: str, ending: str) -> None:
    """Write two pictures of the site at the address `root`."""
    for name, size, addresses in (("site", WIDE, SITE[:1]), ("site-narrow", NARROW, SITE)):
        page, parts = open_page(browser, scheme), []
        for address in addresses:
            page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
            page.goto(root + address, wait_until="networkidle")
            parts.append(shoot(page, size))
            if (faults := Axe().run(page)).violations_count:
                raise ValueError(f"{root}{address}, {size[0]} pixels, {scheme}: {faults.generate_report()}")
        save(FOLDER / f"{name}{ending}", parts)


def take_explorer(browser: Browser, path: Path, scheme: str, ending: str) -> None:
    """Write three pictures of a run's page."""
    page = open_page(browser, scheme)
    page.goto(path.absolute().as_uri())
    page.wait_for_selector("html[data-ready] main > *")
    save(FOLDER / f"explorer-overview{ending}", [shoot(page, WIDE)])
    page.get_by_role("button", name="An example of these").click()
    page.wait_for_selector(".why")
    address = page.evaluate("location.hash")
    page.locator("main").evaluate("part => scrollTo(0, part.getBoundingClientRect().top + scrollY)")
    save(FOLDER / f"explorer-question{ending}", [shoot(page, LOW)])
    parts = []
    for fragment, selector in (("", "#headline"), ("#view=questions&type=who", ".questions"), (address, ".why")):
        page.goto("about:blank")
        page.set_viewport_size(dict(zip(("width", "height"), NARROW, strict=True)))
        page.goto(f"{path.absolute().as_uri()}{fragment}")
        page.wait_for_selector(selector)
        parts.append(shoot(page, NARROW))
    save(FOLDER / f"explorer-narrow{ending}", parts)


def shoot(page: Page, size: tuple[int, int]) -> Image.Image:
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(path: Path, parts: list[Image.Image]) -> None:
    """Write pictures side by side, in a palette, which takes a third of the bytes."""
    width, height = parts[0].size
    picture = Image.new("RGB", (len(parts) * (width + GAP) - GAP, height), "grey")
    for number, part in enumerate(parts):
        picture.paste(part, (number * (width + GAP), 0))
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


if __name__ == "__main__":
    run, site = map(Path, sys.argv[1:])
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox", "--hide-scrollbars"]}
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(**options)
        for colours, suffix in (("light", ".png"), ("dark", "-dark.png")):
            take_explorer(chromium, run, colours, suffix)
            take_site(chromium, f"http://127.0.0.1:{server.server_port}/", colours, suffix)
        chromium.close()
