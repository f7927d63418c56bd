"""A failing schedule can be read: as text, as a picture, on a page."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from examples.hazards.exercises import batches
from examples.hazards.lock_order import Exchange
from examples.hazards.lost_demand import TextbookSubscription
from explore.programs import BROKEN, Named
from reactive_runtime.explore import Failure, ScheduleFailed, explore


def failure_of(program: object) -> Failure:
    failure = explore(program).failure
    assert failure is not None
    return failure


def test_the_textbooks_race_is_two_columns() -> None:
    lines = failure_of(TextbookSubscription).diagram().splitlines()
    assert lines[0].split("│")[0].strip() in ("a", "b")
    assert "if self.demand.get() > 0:   # 0" in lines[2]
    assert lines[-1] == "✗ invariant: rule 3.8: 2 elements were requested, and 1 delivered"
    assert sum(line.startswith("▶") for line in lines) == 2
    assert all(line.count("│") == 1 for line in lines[2:-2])


def test_the_picture_shows_lines_values_and_the_rule() -> None:
    failure = failure_of(TextbookSubscription)
    texts = [
        "".join(item.itertext())
        for item in ElementTree.fromstring(failure.svg()).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert texts[:2] == ["a", "b"]
    assert "  25 if self.demand.get() > 0:   0" in texts
    assert "  28 self.demand.get_and_add(n)   0 → 1" in texts
    assert texts.count("▶") == 2
    assert texts[-1] == "invariant: rule 3.8: 2 elements were requested, and 1 delivered"


def test_a_deadlock_shows_where_each_thread_waits() -> None:
    text = failure_of(Exchange).diagram()
    assert text.count("◆") == 2
    assert "with target.lock:   # waits" in text


def test_signals_are_steps_of_their_own() -> None:
    assert "request(1)" in failure_of(batches.SCENARIO).diagram()


@pytest.mark.parametrize("entry", BROKEN, ids=lambda item: item.name)
def test_every_failure_can_be_drawn(entry: Named) -> None:
    failure = failure_of(entry.program)
    text = failure.diagram()
    assert failure.message in text
    assert max(map(len, text.splitlines()[:-1])) < 260
    assert " object at 0x" not in text
    picture = ElementTree.fromstring(failure.svg())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    _Balanced().feed(failure.html())


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_what_a_program_says_is_escaped() -> None:
    class Evil:
        def __init__(self) -> None:
            self.name = ""

        def actor_a(self) -> None:
            self.name = "<script>alert('&')</script>"

        def actor_b(self) -> None:
            assert not self.name, "</text><script>alert(1)</script>"

    failure = failure_of(Evil)
    for text in (failure.html(), failure.svg()):
        assert "<script>" not in text
        assert "&lt;script&gt;" in text
    ElementTree.fromstring(failure.svg())


def test_a_notebook_shows_the_page() -> None:
    failure = failure_of(TextbookSubscription)
    assert failure._repr_html_() == failure.html()
    assert "<table>" in failure.html()


def test_a_long_schedule_is_shown_in_part() -> None:
    class Long:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.n = 0

        def actor_a(self) -> None:
            for _ in range(200):
                with self.lock:
                    self.n += 1
                if self.n > 100:
                    raise ValueError("enough")

        def actor_b(self) -> None:
            with self.lock:
                self.n += 1

    lines = failure_of(Long).diagram().splitlines()
    assert len(lines) < 100
    assert any("lines …" in line for line in lines)


def test_assert_holds_raises_with_rule_diagram_and_token() -> None:
    result = explore(TextbookSubscription)
    with pytest.raises(ScheduleFailed) as raised:
        result.assert_holds()
    assert isinstance(raised.value, AssertionError)
    failure = raised.value.failure
    text = str(raised.value)
    assert failure.rule == "3.8"
    assert failure.diagram() in text
    assert failure.token in text
    assert "fails after" in str(result)
