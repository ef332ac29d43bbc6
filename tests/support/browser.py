"""A real browser, where the machine has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

# Playwright's own browser is a download that many machines refuse; that of the system does as well.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# No sandbox: CI is often root in a container, where there can be none, and the pages are ours. The rest keeps it from asking
# hosts of its own.
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run")


def chromium() -> str | None:
    """Return the path of a Chromium: that in ``DETOK_CHROMIUM``, or one of those on the PATH; None if there is none."""
    return os.environ.get("DETOK_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """
    Open a headless browser.

    Without one the test is skipped; in CI it fails, so that nothing is skipped there unseen.
    """
    path = chromium()
    if path is None:
        missing("no Chromium: install one (apt-get install chromium), or set DETOK_CHROMIUM to its path")
    with sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        except Error as error:
            missing(f"Chromium does not start: {error}")
        yield opened
        opened.close()


def missing(why: str) -> None:
    """Skip, or fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
