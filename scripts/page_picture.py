"""
Take the picture of the page that the documentation shows.

Use: ``python -m scripts.page_picture [FILE]``. It needs Chromium, and fonts for the scripts and emoji of the example: on Debian
the packages chromium, fonts-inter, fonts-jetbrains-mono, fonts-noto-core, fonts-noto-cjk and fonts-noto-color-emoji.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from starlette.applications import Starlette

import detok
from detok.server.page import page_routes
from scripts.headless import FLAGS, chromium, served

PICTURE = Path(__file__).parents[1] / "docs" / "page.png"
WIDTH, MARGIN, SCALE = 1240, 20, 1.25
# The token behind which one character is out, and the bytes of the next are held.
STEP = 5


def main() -> None:
    """Write the picture to the file that is named, or to the one of the documentation."""
    path = chromium()
    if path is None:
        sys.exit("no Chromium: install one, or set DETOK_CHROMIUM to its path")
    routes = page_routes({"embedded": detok.load(detok.EMBEDDED)}, models=False, metrics=False)
    with served(Starlette(routes=routes)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        page = browser.new_page(viewport={"width": WIDTH, "height": 1200}, device_scale_factor=SCALE, color_scheme="light")
        page.goto(address)
        page.locator(f'.block[data-step="{STEP}"]').click()
        page.mouse.move(0, 0)
        end = page.locator(".now").bounding_box()
        if end is None:
            sys.exit("the page has no step to show")
        clip = {"x": 0.0, "y": 0.0, "width": float(WIDTH), "height": end["y"] + end["height"] + MARGIN}
        page.screenshot(path=sys.argv[1] if len(sys.argv) > 1 else PICTURE, clip=clip)  # type: ignore[arg-type]  # a TypedDict
        browser.close()


if __name__ == "__main__":
    main()
