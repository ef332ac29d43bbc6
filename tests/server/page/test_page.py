"""The page in a real browser: what a person types, steps through and sees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

import detok
from detok.server.page import page_routes
from scripts.headless import served
from tests.support.browser import browser
from tests.support.handmade import METASPACE, make

TOKENIZERS = {
    "embedded": detok.load(detok.EMBEDDED),
    "words": detok.load(make(METASPACE, ("▁Hi", "▁there", "!"))),
}
CHUNKS: list[dict[str, Any]] = [
    {"choices": [{"index": 0, "text": "<b>Hi</b>", "finish_reason": None}]},
    {"choices": [{"index": 0, "text": "", "finish_reason": None}]},
    {"choices": [{"index": 0, "text": " 🦜", "finish_reason": "stop", "stop_reason": "END"}]},
    {"choices": [], "usage": {"completion_tokens": 7}},
]


class Counts:
    """A `/metrics` that grows by five each time it is read."""

    reads = 0

    async def read(self, request: Request) -> Response:
        self.reads += 1
        return PlainTextResponse(
            "# HELP detok_tokens_total Token ids.\n# TYPE detok_tokens_total counter\n"
            f'detok_tokens_total{{model="a\\"}} b"}} {5 * self.reads}\n'
            "# TYPE detok_step_seconds histogram\n"
            'detok_step_seconds_bucket{le="+Inf"} 4\ndetok_step_seconds_sum 0.00012\ndetok_step_seconds_count 4\n'
        )


async def completions(request: Request) -> Response:
    """Streams the chunks, cut where no event ends; waits for ever in the end if the prompt is "wait"."""
    asked = await request.json()
    whole = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n" for chunk in CHUNKS) + ": beat\n\ndata: [DONE]\n\n"

    async def cut() -> AsyncIterator[bytes]:
        content = whole.encode()
        for start in range(0, len(content), 7):
            yield content[start : start + 7]
            if asked["prompt"] == "wait" and start > 120:
                await asyncio.sleep(30)

    return StreamingResponse(cut(), media_type="text/event-stream")


def guarded(request: Request) -> Response:
    """The models, for those who have the key."""
    if request.headers.get("authorization") != "Bearer sesame":
        return JSONResponse({"error": {"message": "the API key is missing", "code": 401}}, 401)
    return JSONResponse({"data": [{"id": "echo"}]})


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as one:
        yield one


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    """A server with nothing but the page."""
    with served(Starlette(routes=page_routes(TOKENIZERS, models=False, metrics=False))) as address:
        yield address


@pytest.fixture
def page(opened: Browser, bare: str) -> Iterator[Page]:
    """The page, traced; in the end it has complained of nothing and asked nobody else."""
    yield from visit(opened, bare)


def visit(opened: Browser, address: str, complaints: int = 0, **options: Any) -> Iterator[Page]:
    context = opened.new_context(**options)
    context.set_default_timeout(10_000)
    page = context.new_page()
    said: list[str] = []
    hosts: set[str] = set()
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(address + "/")
    expect(page.locator(".block").first).to_be_visible()
    yield page
    context.close()
    assert len(said) == complaints, said
    assert hosts == {address.partition("//")[2]}


def type_text(page: Page, text: str, stop: str = "") -> None:
    """Type, and wait for the blocks of it."""
    page.fill("#stop", stop)
    page.fill("#input", text)
    expect(page.locator("#blocks")).to_have_attribute("data-of", text)


def pieces(page: Page) -> list[str]:
    return page.locator(".block .piece").all_inner_texts()


def test_typed_text_becomes_blocks(page: Page) -> None:
    """Each token is a block with its surface, bytes and id; the whole text stands above."""
    type_text(page, "Zoë")
    assert pieces(page) == ["Z", "o", "Ã", "«"]
    ids = TOKENIZERS["embedded"].encode("Zoë")
    assert page.locator(".block .id").all_inner_texts() == [str(token_id) for token_id in ids]
    assert page.locator(".block .bytes").all_inner_texts() == ["5A", "6F", "C3", "AB"]
    expect(page.locator("#ours")).to_have_text("Zoë")
    expect(page.locator("#ours-verdict")).to_contain_text("equals the one-shot decode")
    expect(page.locator("#other .wrong")).to_have_count(2)
    expect(page.locator("#other-verdict")).to_contain_text("2 of 4 tokens wrong: broken character")


def test_steps_by_keyboard_show_what_is_held(page: Page) -> None:
    """The arrows move step and focus among the blocks; what is held and why is said."""
    type_text(page, "Zoë")
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    expect(page.locator("#where")).to_have_text("token 0 of 4")
    expect(page.locator("#now")).to_contain_text("nothing is given")
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#where")).to_have_text("token 3 of 4")
    expect(page.locator(".block:focus .id")).to_have_text(str(TOKENIZERS["embedded"].encode("ë")[0]))
    expect(page.locator("#ours .chip")).to_have_text("C3")
    expect(page.locator("#now")).to_contain_text("incomplete character")
    expect(page.locator(".block.is-now")).to_have_count(1)
    expect(page.locator(".block.is-later")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#ours .new")).to_have_text("ë")
    expect(page.locator("#ours .chip")).to_have_count(0)
    page.keyboard.press("End")
    expect(page.locator("#where")).to_have_text("end, after 4 tokens")


def test_play_goes_to_the_end(page: Page) -> None:
    """Space plays from the beginning, and stops at the end."""
    type_text(page, "ë")
    page.locator('.block[tabindex="0"]').focus()
    page.keyboard.press(" ")
    expect(page.locator("#play")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#where")).to_have_text("end, after 2 tokens")
    expect(page.locator("#play")).to_have_attribute("aria-pressed", "false")


def test_stop_is_held_and_matched(page: Page) -> None:
    """The candidate is shown with what it lacks; at the match the text ends, and the rest is dropped."""
    type_text(page, "yes\n\nUser: no", stop="\\n\\nUser:")
    expect(page.locator("#ours .ended")).to_be_visible()
    expect(page.locator("#ours")).to_have_text("yesstop")
    expect(page.locator(".block.is-dropped")).not_to_have_count(0)
    expect(page.locator("#other .wrong")).not_to_have_count(0)
    expect(page.locator("#other-verdict")).to_contain_text("part of the stop")
    held = page.locator(".block.is-stop").first
    held.click()
    expect(page.locator("#ours .chip.of-stop")).to_contain_text("⏎")
    expect(page.locator("#ours .chip .ahead")).to_contain_text("User:")
    expect(page.locator("#now")).to_contain_text("it may become a stop")


def test_ids_can_be_pasted_as_they_are_printed(page: Page) -> None:
    """Brackets and commas are fine; a word is refused in words; unknown ids are shown as such."""
    page.get_by_label("Token ids", exact=True).check()
    type_text(page, "[57, 78,\n999999]")
    assert pieces(page) == ["Z", "o", "no such id"]
    page.fill("#input", "57 seven")
    expect(page.locator("#error")).to_contain_text("“seven” is no token id")
    expect(page.locator("#result")).to_be_hidden()


def test_tokenizer_can_be_chosen(page: Page) -> None:
    """Another tokenizer, other tokens, other faults; the window's text can stand beside it."""
    page.select_option("#tokenizer", "words")
    page.get_by_label("Token ids", exact=True).check()
    type_text(page, "0 1 2")
    expect(page.locator("#ours")).to_have_text("Hi there!")
    expect(page.locator("#other")).to_have_text("Hithere!")
    expect(page.locator("#other-verdict")).to_contain_text("lost space")
    page.select_option("#beside", "window")
    expect(page.locator("#other-title")).to_have_text("vLLM's window")
    expect(page.locator("#other")).to_have_text("Hi there!")


def test_text_is_never_markup(page: Page) -> None:
    """Tags are shown as they are written."""
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    type_text(page, hostile)
    expect(page.locator("#ours")).to_have_text(hostile)
    assert page.locator("#result img, #result script").count() == 0


def test_timeline_has_a_row_for_each_step(page: Page) -> None:
    """The table says the same as the blocks, for those who read it."""
    type_text(page, "ë!")
    page.get_by_text("What came out when").click()
    rows = page.locator("#rows tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("incomplete character")
    expect(rows.nth(0)).to_contain_text("broken character")
    expect(rows.nth(1).locator(".given")).to_have_text("ë")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_reader(opened: Browser, bare: str, scheme: str) -> None:
    """The system's choice is followed, the reader's own comes first, and is kept; the words can be read in both."""
    other = {"light": "Dark", "dark": "Light"}[scheme]
    for page in visit(opened, bare, color_scheme=scheme):
        before = background(page)
        assert is_dark(before) == (scheme == "dark")
        page.locator("#slider").fill("3")
        expect(page.locator("#ours .chip")).to_be_visible()
        assert least_contrast(page) >= 4.5
        page.get_by_label(other, exact=True).check()
        assert is_dark(background(page)) == (scheme != "dark")
        page.reload()
        expect(page.locator(f'#theme input[value="{other.lower()}"]')).to_be_checked()
        assert is_dark(background(page)) == (scheme != "dark")


def background(page: Page) -> list[int]:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def is_dark(colour: list[int]) -> bool:
    return sum(colour) < 3 * 128


CONTRAST = """() => {
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const rgba = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if ((colour[3] ?? 1) === 1) return colour;
    }
  };
  const ratios = [...document.querySelectorAll("main *, header *")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
    .map((one) => [light(rgba(getComputedStyle(one).color)), light(behind(one))].sort((a, b) => b - a))
    .map(([more, less]) => (more + 0.05) / (less + 0.05));
  return Math.min(...ratios);
}"""


def least_contrast(page: Page) -> float:
    """The least contrast of any text with what stands behind it, as WCAG 2 counts it."""
    ratio: float = page.evaluate(CONTRAST)
    return ratio


def test_everything_is_reached_by_tab_and_has_a_name(page: Page) -> None:
    """In the order of the page, with a visible focus, and each control says what it is."""
    reached, outlines = [], set()
    for _ in range(40):
        page.keyboard.press("Tab")
        at = "document.activeElement"
        name = page.evaluate(f"{at} === document.body ? '' : {at}.id || {at}.name || {at}.className || {at}.tagName")
        if not name:
            break
        reached.append(name)
        outlines.add(page.evaluate("document.activeElement.matches(':focus-visible')"))
    wanted = ["skip", "theme", "kind", "example", "tokenizer", "input", "stop", "include-stop", "beside", "play", "slider"]
    assert [name for name in reached if name in wanted] == wanted
    assert outlines == {True}
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button')].filter((one) => one.checkVisibility() &&"
        " !one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map((one) => one.id)"
    )
    assert nameless == []


def test_model_is_talked_to_with_the_key(opened: Browser) -> None:
    """The key is asked for once; the answer streams, however its bytes are cut; a stopped one says so."""
    models = [Route("/v1/models", guarded), Route("/v1/completions", completions, methods=["POST"])]
    application = Starlette(routes=[*page_routes(TOKENIZERS, metrics=False), *models])
    with served(application) as address:
        # The browser itself notes the one 401.
        for page in visit(opened, address, complaints=1):
            expect(page.locator("#talk-lead")).to_contain_text("the API key is missing")
            page.fill("#key-value", "sesame")
            page.get_by_role("button", name="Use it").click()
            page.fill("#prompt", "Hi")
            page.get_by_role("button", name="Send").click()
            expect(page.locator("#answer-verdict")).to_contain_text("3 chunks · 1 empty")
            expect(page.locator("#answer-verdict")).to_contain_text('7 tokens · ended: stop ("END")')
            expect(page.locator("#answer")).to_have_text("<b>Hi</b> 🦜")
            page.fill("#prompt", "wait")
            page.get_by_role("button", name="Send").click()
            expect(page.locator("#answer")).to_have_text("<b>Hi</b>")
            page.get_by_role("button", name="Stop", exact=True).click()
            expect(page.locator("#answer-verdict")).to_contain_text("you stopped it")
            expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_metrics_are_drawn_while_they_are_seen(opened: Browser) -> None:
    """Nothing is read before somebody looks; then totals, rates and means stand there."""
    counts = Counts()
    with served(Starlette(routes=[*page_routes(TOKENIZERS, models=False), Route("/metrics", counts.read)])) as address:
        for page in visit(opened, address, viewport={"width": 900, "height": 500}):
            assert counts.reads == 0
            page.locator("#metrics").scroll_into_view_if_needed()
            meters = page.locator(".meter")
            expect(meters).to_have_count(2)
            expect(meters.nth(0).locator(".label")).to_have_text('model=a"} b')
            expect(meters.nth(0).locator("b")).to_have_text("10")
            expect(meters.nth(0).locator(".hint")).to_contain_text("/s")
            expect(meters.nth(1).locator("b")).to_have_text("30 µs mean")
            page.get_by_role("button", name="Pause").click()
            assert page.get_by_role("button", name="Go on").is_visible()


def test_absent_metrics_are_said_to_be_absent(opened: Browser) -> None:
    """A server that promised them and has none does no harm."""
    with served(Starlette(routes=page_routes(TOKENIZERS, models=False))) as address:
        for page in visit(opened, address, complaints=1):
            page.locator("#metrics").scroll_into_view_if_needed()
            expect(page.locator("#metrics-lead")).to_contain_text("No metrics")


def test_page_fits_a_narrow_screen(opened: Browser, bare: str) -> None:
    """Nothing has to be scrolled sideways."""
    for page in visit(opened, bare, viewport={"width": 360, "height": 740}):
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
