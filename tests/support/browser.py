"""A real browser, where the machine has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from scripts.headless import FLAGS, chromium


@contextmanager
def browser() -> Iterator[Browser]:
    """
    Open a headless browser.

    Without one the test is skipped, so that one can work without it; in CI it fails, so that nothing is skipped there unseen.
    """
    path = chromium()
    if path is None:
        _missing("no Chromium: install one (apt-get install chromium), or set DETOK_CHROMIUM to its path")
    with sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        except Error as error:
            _missing(f"Chromium does not start: {error}")
        yield opened
        opened.close()


def _missing(why: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
