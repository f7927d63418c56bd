"""The report in a browser: opened, sorted, filtered, unfolded, in the dark, without JavaScript, printed, and by axe.

Screenshots are kept in the folder that pytest keeps for this run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_layout import TEXTS, overlaps

from examples.year.made_year import Planted, commit_of, date_of, machine_of, made_year
from examples.year.made_year import write_year as write_made_year
from reactive_runtime.report import write_report, write_year
from reactive_runtime.report._year_page import LARGEST
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


# -- the year -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def year_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """365 nights on 200 machines, with four failures."""
    folder = tmp_path_factory.mktemp("year")
    planted = [
        Planted("merge", 90, tuple(range(200)), "1.3", nights=6),
        Planted("replay", 180, tuple(range(40, 80)), "2.7", nights=60),
        Planted("timeout", 260, (120,), "1.8"),
        Planted("group_by", 300, tuple(range(140, 160)), "conservation", every=3),
    ]
    write_made_year(folder, made_year(planted))
    write_year(folder, folder / "year.html")
    assert (folder / "year.html").stat().st_size <= LARGEST
    return (folder / "year.html").as_uri()


def test_a_year_names_night_commit_and_machine_and_shows_each_night(
    opened: Callable[..., Any], year_address: str, shots: Path
) -> None:
    page = opened(year_address, viewport={"width": 1280, "height": 900})
    page.screenshot(path=shots / "year.png", full_page=True)
    assert page.locator(".verdict .word").inner_text() == "2 failure(s) last"
    rows = [row.locator("td, th").all_inner_texts() for row in page.locator("#began tbody tr").all()]
    expected = [(300, "group_by"), (260, "timeout"), (180, "replay"), (90, "merge")]
    assert [(row[0], row[1], row[3].splitlines()) for row in rows] == [
        (date_of(night), scenario, [commit_of(night), f"after {commit_of(night - 1)}"]) for night, scenario in expected
    ]
    assert rows[1][4] == machine_of(120)
    assert [row[-1].splitlines()[0] for row in rows] == ["comes and goes", "fails", "over", "over"]
    picture = page.locator("#year")
    assert picture.evaluate("it => [it.naturalWidth, it.naturalHeight]") == [365, 200]
    assert page.locator("svg.chart path").count() == 6
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    picture.hover(position={"x": box["width"] * 261.5 / 365, "y": box["height"] * 120.5 / 200})
    assert page.locator("#pointed").inner_text() == f"{date_of(261)}: {machine_of(120)}"


def test_a_year_is_sorted_and_filtered_and_read_without_javascript(
    opened: Callable[..., Any], year_address: str
) -> None:
    page = opened(year_address)
    page.get_by_label("only what is not clean").check()
    assert names(page) == ["group_by", "timeout"]
    page = opened(year_address, java_script_enabled=False)
    assert len(names(page)) == 6
    assert page.locator("#machines tbody tr").count() == 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_in_a_year(
    opened: Callable[..., Any], year_address: str, shots: Path, scheme: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(year_address, color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    found = Axe().run(page)
    page.screenshot(path=shots / f"year_{scheme}_{width}.png")
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
