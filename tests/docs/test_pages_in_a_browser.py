"""The site in a browser: the front page, an operator and a lesson, in the light, in the dark, and on a phone.

What was seen is kept in build/screenshots; CI has it as an artefact of that name.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_layout import TEXTS, overlaps
from report.conftest import browser as browser  # a fixture

pytestmark = pytest.mark.timeout(1000)  # the first of them builds the site

PAGES = {
    "front": "index.html",
    "operator": "reference/flow/flat_map.html",
    "lesson": "lessons/lost_demand.html",
    "lesson-four-threads": "lessons/one_condition_for_two.html",
    "lesson-livelock": "lessons/polite_livelock.html",
    "lessons": "lessons/index.html",
    "game": "lessons/lost_update.html",
    "lecture": "lecture.html",
    "slides": "lessons/slides-d.html",
    "how-to": "how-to/from-reactor.html",
    "module": "reference/testing.html",
}
LESSONS = [name for name in PAGES if name.startswith("lesson-") or name == "lesson"]
PICTURES = {"front": "svg.marble", "operator": "svg.marble", **dict.fromkeys(LESSONS, ".schedule svg")}
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
SCROLLING = "pre, table, .table-wrapper, .marble-scroll, .schedule, .sidebar-scroll, .toc-drawer"
"""What scrolls in a box of its own, or comes in from the side."""

KEPT = Path("build/screenshots")


@pytest.fixture(scope="session")
def shots() -> Path:
    KEPT.mkdir(parents=True, exist_ok=True)
    return KEPT


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page; it may not say anything on the console, and may not ask for anything elsewhere."""
    pages, said = [], []

    def asked(request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            said.append(request.url)

    def open_page(name: str, **options: Any) -> Any:
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", asked)
        page.goto((site / PAGES[name]).as_uri())
        page.evaluate("document.querySelectorAll('details.answer').forEach(it => { it.open = true })")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert said == []


def lightness(page: Any, selector: str, what: str) -> float:
    """Of a colour that an element is drawn in: 0 is black, 255 is white."""
    colour: str = page.evaluate(
        "([selector, what]) => getComputedStyle(document.querySelector(selector))[what]", [selector, what]
    )
    numbers = [float(part) for part in colour[colour.index("(") + 1 : -1].replace("/", ",").split(",")[:3]]
    return sum(numbers) / 3


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_can_be_read_in_the_light_and_in_the_dark(opened: Callable[..., Any], shots: Path, name: str) -> None:
    shares = []
    for scheme in ("light", "dark"):
        page = opened(name, color_scheme=scheme, viewport=DESKTOP)
        shot = page.screenshot(path=shots / f"{name}-{scheme}.png", full_page=True)
        shares.append(share_of_light_pixels(page, shot))
        assert faults(page, DESKTOP["width"]) == []
        box = page.locator(PICTURES[name]).first.bounding_box()
        assert box["width"] > 250
        assert box["height"] > 100
        ink = lightness(page, ".schedule .ink" if name in LESSONS else "svg.marble .code", "fill")
        paper = lightness(page, "body", "backgroundColor")
        assert abs(ink - paper) > 150  # it can be read
    light, dark = shares
    assert 0.8 < light < 0.999, "mostly paper, and something on it"
    assert 0.001 < dark < 0.2


def faults(page: Any, width: int) -> list[tuple[object, ...]]:
    """Of the page as it is laid out, and of its own part by axe: contrast, names, keyboard. The rest is the theme's."""
    from axe_playwright_python.sync_playwright import Axe

    texts = page.evaluate(TEXTS, SCROLLING)
    assert len(texts) > 100
    without = {"definition-list": {"enabled": False}}  # Sphinx's: a signature on several lines is a dl without a dt
    by_axe = Axe().run(page, "article", {"rules": without, "preload": False}).response["violations"]
    found: list[tuple[object, ...]] = [(broken["id"], broken["nodes"][0]["html"]) for broken in by_axe]
    found += [("one text on another", *pair) for pair in overlaps(texts)]
    found += [
        ("cut off", text["text"])
        for text in texts
        if text["within"] == [0, width] and (text["at"][0] < -0.5 or text["at"][2] > width + 0.5)
    ]
    if (wide := page.evaluate("document.scrollingElement.scrollWidth")) > width:
        found.append(("scrolls sideways", wide))
    return found


def share_of_light_pixels(page: Any, shot: bytes) -> float:
    """From 0, all is dark, to 1, all is light: of what was kept."""
    share: float = page.evaluate(
        """async picture => {
          const bitmap = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob());
          const {width, height} = bitmap;
          const drawn = new OffscreenCanvas(width, height).getContext("2d");
          drawn.drawImage(bitmap, 0, 0);
          const pixels = drawn.getImageData(0, 0, width, height).data;
          let light = 0;
          for (let at = 0; at < pixels.length; at += 4) light += pixels[at] + pixels[at + 1] + pixels[at + 2] > 384;
          return light / (width * height);
        }""",
        base64.b64encode(shot).decode(),
    )
    return share


@pytest.mark.parametrize(
    ("spoilt", "named"),
    [
        ("document.querySelector('article h1').style.transform = 'translateY(5rem)'", "one text on another"),
        ("document.querySelector('article h1').style.marginLeft = '1200px'", "cut off"),
        ("document.querySelector('article').style.width = '1400px'", "scrolls sideways"),
        ("document.querySelector('article p').style.color = '#ccc'", "color-contrast"),
    ],
)
def test_what_cannot_be_read_is_seen(opened: Callable[..., Any], spoilt: str, named: str) -> None:
    """The test above can fail."""
    page = opened("front", color_scheme="light", viewport=DESKTOP)
    page.evaluate(spoilt)
    assert named in [fault[0] for fault in faults(page, DESKTOP["width"])]


SECTIONS = ["Parameters", "Returns", "Raises", "Demand", "Cancellation", "Thread", "Example", "Origin"]


def test_the_sections_of_an_operator_are_headings_that_look_the_same(opened: Callable[..., Any]) -> None:
    page = opened("operator", viewport=DESKTOP)
    found = page.evaluate(
        """[...document.querySelectorAll("dl.py dd > dl.field-list > dt, dl.py dd > p.rubric")].map(heading => {
          const looks = getComputedStyle(heading), box = heading.getBoundingClientRect();
          const below = heading.nextElementSibling.getBoundingClientRect().top >= box.bottom - 1;
          return [heading.firstChild.data, looks.fontSize, looks.fontWeight, looks.color, box.left, below];
        })"""
    )
    assert [heading[0] for heading in found] == SECTIONS
    assert len({tuple(heading[1:]) for heading in found}) == 1
    assert found[0][-1]  # its text is below it


def test_the_picture_follows_the_switch_of_the_page(opened: Callable[..., Any]) -> None:
    page = opened("operator", color_scheme="light", viewport=DESKTOP)
    before = lightness(page, "svg.marble .code", "fill")
    page.evaluate("document.body.dataset.theme = 'dark'")
    assert before < 80
    assert lightness(page, "svg.marble .code", "fill") > 180


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_on_a_phone(opened: Callable[..., Any], shots: Path, name: str) -> None:
    page = opened(name, viewport=PHONE)
    page.screenshot(path=shots / f"{name}-phone.png", full_page=True)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("name", LESSONS)
def test_the_answers_of_a_lesson_are_behind_their_questions(opened: Callable[..., Any], name: str) -> None:
    page = opened(name, viewport=DESKTOP)
    page.reload()
    answers = page.locator("details.answer")
    assert answers.count() >= 2
    assert not page.locator(".schedule svg").first.is_visible()
    headings = page.locator("article h2").all_inner_texts()
    assert [heading.rstrip("¶# ") for heading in headings] == [
        "The program that is broken",
        "What can go wrong?",
        "Find the schedule yourself",
        "The schedule that shows it",
        "The fix",
        "And if …",
        "With a GIL, and without",
        "Met for real",
        "Now you",
    ]
    answers.first.locator("summary").press("Enter")  # by keyboard, too
    assert page.locator(".schedule svg").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_thread_of_a_schedule_has_a_colour_that_can_be_read(opened: Callable[..., Any], scheme: str) -> None:
    page = opened("lesson-four-threads", viewport=DESKTOP, color_scheme=scheme)
    fills = page.evaluate(
        "[...document.querySelectorAll('.schedule text[font-weight]')].map(name => getComputedStyle(name).fill)"
    )
    assert len(set(fills)) == len(fills) == 4
    assert page.locator(".schedule").first.inner_text().count("the thread waits here for ever") == 1


def test_threads_have_colours_that_can_be_distinguished(opened: Callable[..., Any]) -> None:
    page = opened("front", viewport=DESKTOP)
    fills = page.evaluate(
        "[...document.querySelectorAll('svg.marble .marble-of')].map(circle => getComputedStyle(circle).fill)"
    )
    assert len(set(fills)) >= 2


def test_a_lesson_is_played_on_its_page(opened: Callable[..., Any], shots: Path) -> None:
    """Step by step, with a step back, and with the explorer's schedule on request."""
    page = opened("game", color_scheme="light", viewport=DESKTOP)
    game = page.locator("figure.game")

    def choose(thread: int) -> None:
        game.locator(f'.choice[data-thread="{thread}"]').click()

    assert "load self.count" in game.locator(".next").inner_text()
    choose(1)
    choose(1)
    assert "store 1" in game.locator(".played").inner_text()
    assert game.locator('.choice[data-thread="1"]').is_disabled()
    game.get_by_role("button", name="Undo").click()
    for thread in (2, 1, 2):
        choose(thread)
    assert "two were added, and the count is 1. Found, in 4 steps" in game.locator(".outcome.failed").inner_text()
    game.screenshot(path=shots / "game-played.png")
    game.get_by_role("button", name="Restart").click()
    for thread in (1, 1, 2, 2):
        choose(thread)
    assert "all holds" in game.locator(".outcome.held").inner_text()
    game.get_by_role("button", name="Show the explorer's").click()
    rows = game.locator("tbody tr").all_inner_texts()
    assert len(rows) == 4
    assert [text.partition("# ")[2].split()[0] for text in rows] == ["load", "load", "store", "store"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_game_can_be_read_in_the_light_and_in_the_dark(opened: Callable[..., Any], shots: Path, scheme: str) -> None:
    page = opened("game", color_scheme=scheme, viewport=DESKTOP)
    for thread in (1, 2):
        page.locator(f'.choice[data-thread="{thread}"]').click()
    page.screenshot(path=shots / f"game-{scheme}.png", full_page=True)
    assert faults(page, DESKTOP["width"]) == []


@pytest.mark.parametrize("name", ["lecture", "slides"])
def test_slides_are_shown_one_at_a_time(opened: Callable[..., Any], shots: Path, name: str) -> None:
    page = opened(name, viewport=DESKTOP)
    titles = page.locator("article section section h2").all_inner_texts()
    shown = page.locator("section.shown")
    assert shown.count() == 0
    page.click("button.present")
    seen = []
    for key in ("ArrowLeft", "ArrowRight", " ", "PageUp"):
        page.keyboard.press(key)
        assert shown.count() == 1
        seen.append(shown.locator("h2").inner_text())
    assert seen == [titles[0].rstrip("¶#"), *(titles[at].rstrip("¶#") for at in (1, 2, 1))]
    page.screenshot(path=shots / f"{name}-presented.png")
    box = shown.bounding_box()
    assert (box["width"], box["height"]) == (DESKTOP["width"], DESKTOP["height"])
    assert page.locator("section.shown .say:visible").count() == 0
    page.keyboard.press("Escape")
    assert shown.count() == 0
    assert page.locator(".presenting").count() == 0
