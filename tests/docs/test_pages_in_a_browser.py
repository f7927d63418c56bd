"""The site in a browser: the front page, an operator and a lesson, in the light, in the dark, and on a phone.

Screenshots are kept in the folder that pytest keeps for this run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from report.conftest import browser as browser  # a fixture

pytestmark = pytest.mark.timeout(1000)  # the first of them builds the site

PAGES = {
    "front": "index.html",
    "operator": "reference/flow/flat_map.html",
    "lesson": "lessons/lost_demand.html",
    "how-to": "how-to/from-reactor.html",
    "module": "reference/testing.html",
}
PICTURES = {"front": "svg.marble", "operator": "svg.marble", "lesson": ".schedule svg"}
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screenshots")


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PICTURES)
def test_a_page_has_its_picture_in_the_light_and_in_the_dark(
    opened: Callable[..., Any], shots: Path, name: str, scheme: str
) -> None:
    page = opened(name, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    box = page.locator(PICTURES[name]).first.bounding_box()
    assert box["width"] > 250
    assert box["height"] > 100
    page.screenshot(path=shots / f"{name}-{scheme}.png", full_page=True)
    ink = lightness(page, "svg.marble .code" if name != "lesson" else ".schedule .ink", "fill")
    paper = lightness(page, "body", "backgroundColor")
    assert abs(ink - paper) > 150  # it can be read
    assert (paper > 128) == (scheme == "light")


def test_the_picture_follows_the_switch_of_the_page(opened: Callable[..., Any]) -> None:
    page = opened("operator", color_scheme="light", viewport={"width": 1280, "height": 900})
    before = lightness(page, "svg.marble .code", "fill")
    page.evaluate("document.body.dataset.theme = 'dark'")
    assert before < 80
    assert lightness(page, "svg.marble .code", "fill") > 180


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_on_a_phone(opened: Callable[..., Any], shots: Path, name: str) -> None:
    page = opened(name, viewport=PHONE)
    page.screenshot(path=shots / f"{name}-phone.png", full_page=True)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]


def test_threads_have_colours_that_can_be_told_apart(opened: Callable[..., Any]) -> None:
    page = opened("front", viewport={"width": 1280, "height": 900})
    fills = page.evaluate(
        "[...document.querySelectorAll('svg.marble .marble-of')].map(it => getComputedStyle(it).fill)"
    )
    assert len(set(fills)) >= 2
