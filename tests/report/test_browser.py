"""The report in a browser: opened, sorted, filtered, unfolded, in the dark, without JavaScript, printed, and by axe.

Screenshots are kept in the folder that pytest keeps for this run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_layout import TEXTS, overlaps

from reactive_runtime.report import write_report
from report.conftest import NASTY, history


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screenshots")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    write_report(history(folder, scenarios=12), folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """64 scenarios, most with names as long as they get; ten nights."""
    folder = tmp_path_factory.mktemp("large")
    write_report(history(folder, runs=10, scenarios=64, long_names=True), folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page; it may not say anything on the console."""
    pages, said = [], []

    def open_page(address: str = address, **options: Any) -> Any:
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert said == []


def names(page: Any) -> list[str]:
    return [text for text in page.locator("#scenarios tbody tr:visible th").all_inner_texts() if text != NASTY]


def test_it_opens_and_what_it_carries_does_not_run(opened: Callable[..., Any], shots: Path) -> None:
    page = opened()
    assert page.title() == "Broken: night-2"
    assert page.locator(".verdict .word").inner_text() == "Broken"
    page.screenshot(path=shots / "opened.png", full_page=True)
    assert (shots / "opened.png").stat().st_size > 10_000


def test_a_column_is_sorted_by_its_head_up_and_down(opened: Callable[..., Any], shots: Path) -> None:
    page = opened()
    head = page.get_by_role("columnheader", name="subscriptions").first
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = names(page)
    assert up == [f"scenario_{n}" for n in range(1, 12)]  # by number: 2 comes before 10
    page.keyboard.press("Enter")  # the button still has the focus
    assert head.get_attribute("aria-sort") == "descending"
    assert names(page) == up[::-1]
    page.screenshot(path=shots / "sorted.png")


def test_scenarios_are_filtered_by_name_and_by_verdict(opened: Callable[..., Any], shots: Path) -> None:
    page = opened()
    page.get_by_label("Scenario", exact=True).fill("Scenario_1")
    assert names(page) == ["scenario_1", "scenario_10", "scenario_11"]
    page.get_by_label("only what is not clean").check()
    assert names(page) == ["scenario_1"]
    assert page.locator("#shown").inner_text() == "1 of 12 scenarios"
    page.screenshot(path=shots / "filtered.png")


def test_a_violation_is_unfolded_to_its_diagram(opened: Callable[..., Any], shots: Path) -> None:
    page = opened()
    details = page.locator("details").first
    diagram = details.locator("pre")
    details.locator("summary").click()
    assert not diagram.is_visible()
    details.locator("summary").click()
    assert diagram.is_visible()
    assert ">> 7  on_next(1)" in diagram.inner_text()
    page.screenshot(path=shots / "unfolded.png")


def test_it_can_be_read_without_javascript(opened: Callable[..., Any], shots: Path) -> None:
    page = opened(java_script_enabled=False)
    assert len(names(page)) == 11
    assert not page.locator("#filters").is_visible()
    assert page.locator("details pre").first.is_visible()
    page.screenshot(path=shots / "without_javascript.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_in_light_or_dark_on_a_small_or_a_large_screen(
    opened: Callable[..., Any], shots: Path, scheme: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    found = Axe().run(page)
    page.screenshot(path=shots / f"{scheme}_{width}.png", full_page=True)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # wide tables scroll in their own box


def test_light_and_dark_differ(opened: Callable[..., Any]) -> None:
    colours = [
        opened(color_scheme=item).evaluate("getComputedStyle(document.body).backgroundColor")
        for item in ("light", "dark")
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


def test_what_is_folded_is_printed(opened: Callable[..., Any], shots: Path) -> None:
    page = opened()
    page.locator("details summary").first.click()
    page.emulate_media(media="print")
    assert not page.locator("#filters").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details pre").first.is_visible()
    page.pdf(path=shots / "printed.pdf")
    assert (shots / "printed.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("width", [1280, 400])
def test_of_64_scenarios_no_two_texts_overlap_and_none_is_cut_off(
    opened: Callable[..., Any], large: str, shots: Path, width: int
) -> None:
    page = opened(large, viewport={"width": width, "height": 800})
    page.screenshot(path=shots / f"large_{width}.png", full_page=True)
    assert page.locator("figure:visible").count() == page.locator("#scenarios tbody tr:visible").count() == 64
    texts = page.evaluate(TEXTS, ".wide, pre")
    assert len(texts) > 64 * 12
    assert overlaps(texts) == []
    beyond = [
        text for text in texts if text["at"][0] < text["within"][0] - 0.5 or text["at"][2] > text["within"][1] + 0.5
    ]
    if width == 1280:
        assert beyond == []
    else:  # on a small screen tables scroll in their own boxes; nothing else is cut off
        assert [item for item in beyond if item["within"] == [0, width]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for figure in page.locator("figure").all():
        assert "signals and calls" in figure.inner_text()
        assert figure.evaluate("it => it.scrollWidth <= it.clientWidth")


def test_what_lies_on_another_text_or_is_cut_off_is_seen(opened: Callable[..., Any], large: str) -> None:
    """The test above can fail."""
    page = opened(large, viewport={"width": 1280, "height": 800})
    page.evaluate("document.querySelectorAll('figcaption')[7].style.transform = 'translateX(15rem)'")
    page.evaluate("document.querySelector('h2').style.marginLeft = '1200px'")
    texts = page.evaluate(TEXTS, ".wide, pre")
    assert overlaps(texts) != []
    assert any(text["at"][2] > text["within"][1] + 0.5 for text in texts)
