"""A failing schedule can be read: as text, as a picture, on a page."""

from __future__ import annotations

import importlib
import threading
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import pytest

from examples.hazards.atomicity.lost_update import Counter
from examples.hazards.exercises import batches
from examples.hazards.progress.lock_order import Exchange
from examples.hazards.progress.polite_livelock import Supper
from examples.hazards.streams.lost_demand import TextbookSubscription
from examples.hazards.streams.missed_wake_up import HastyDrain
from explore.programs import BROKEN, Named
from reactive_runtime.explore import Failure, ScheduleFailed, explore
from reactive_runtime.explore._render.schedule_diagram import MARKS, Row, _folded

SVG = "{http://www.w3.org/2000/svg}"


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
    assert "invariant: rule 3.8: 2 elements were requested, and 1 delivered" in texts
    assert texts[-2:] == [f"{mark} {MARKS[mark]}" for mark in "▶▷"]


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
    assert max(map(len, text.splitlines()[:-1])) <= 100
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
    assert "<style>" in failure.html()  # needs nothing else


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
    assert len(lines) < 30
    assert any("times more …" in line for line in lines)
    assert "# load 100; store 101" in "\n".join(lines)  # the last turn is shown, with its values


def test_a_long_schedule_without_a_period_is_shown_in_part() -> None:
    class Winding:
        def __init__(self) -> None:
            self.items = list(range(400))

        def actor_a(self) -> None:
            for n in range(400):
                if n * n % 7 in (1, 2) or n % 11 == 0 or n * n * n % 13 < 5:
                    self.items[n] = 0
                else:
                    self.items.append(n)

        def actor_b(self) -> None:
            for _ in range(3):
                self.items.pop()
            raise ValueError("enough")

    lines = failure_of(Winding).diagram().splitlines()
    assert len(lines) < 100


def test_rows_that_repeat_themselves_are_folded() -> None:
    rows = [Row(0, "", n % 2, f"line {n % 2}", str(n)) for n in range(20)]
    folded = [
        (row.source, row.values) for row in _folded([Row(1, "▶", 9, "first", ""), *rows, Row(1, "▷", 9, "last", "")])
    ]
    assert folded == [
        ("first", ""),
        *[("line 0", "0"), ("line 1", "1"), ("… these 2 lines 8 times more …", ""), ("line 0", "18"), ("line 1", "19")],
        ("last", ""),
    ]
    assert _folded(rows[:6]) == rows[:6]


def test_the_line_that_raised_is_marked_and_the_pictures_have_the_traceback() -> None:
    class Emptied:
        def __init__(self) -> None:
            self.jobs = [1]

        def take(self) -> None:
            if self.jobs:
                self.jobs.pop()

        def actor_a(self) -> None:
            self.take()

        def actor_b(self) -> None:
            self.take()

    failure = failure_of(Emptied)
    *_, last, _, end = failure.diagram().splitlines()
    assert last.startswith("✗")
    assert "self.jobs.pop()   # IndexError" in last
    assert end.startswith("✗ raised in thread ")
    assert failure.breach is not None
    assert failure.breach[0] == __file__
    texts = ["".join(item.itertext()) for item in ElementTree.fromstring(failure.svg()).iter(f"{SVG}text")]
    told = texts.index("IndexError: pop from empty list")
    *_, above = [text.strip() for text in texts[:told] if text.strip("~^ ")]  # newer Pythons underline what raised
    assert above == "self.jobs.pop()" or above.startswith('File "')
    assert f"✗ {MARKS['✗']}" in texts[told + 1 :]
    assert "IndexError: pop from empty list</pre>" in failure.html()


def test_a_load_and_a_store_look_different() -> None:
    text = failure_of(Counter).diagram()
    assert "self.count += 1   # load 0; store 1" in text
    assert text.count("# load 0\n") == 1
    assert text.count("# store 1\n") == 1


def test_lines_of_several_files_have_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text(f"def {folder}(it):\n    it.n = it.n + 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    one, other = importlib.import_module("one"), importlib.import_module("other")

    class Files:
        def __init__(self) -> None:
            self.n = 0

        def actor_a(self) -> None:
            one.one(self)

        def actor_b(self) -> None:
            other.other(self)

        def at_end(self) -> None:
            assert self.n == 2

    failure = explore(Files, modules=[one, other]).failure
    assert failure is not None
    for picture in (failure.diagram(), failure.svg(), failure.html()):
        assert "one/__init__.py:2 " in picture
        assert "other/__init__.py:2 " in picture


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_diagram_fits_into_the_columns_it_is_given(width: int) -> None:
    lines = failure_of(HastyDrain).diagram(width=width).splitlines()[:-1]
    assert max(map(len, lines)) <= width
    assert any("# store False" in line for line in lines), "the values are there, however narrow"


def test_the_period_of_a_livelock_is_shown_once() -> None:
    failure = failure_of(Supper)
    assert failure.kind == "livelock"
    lines = failure.diagram().splitlines()
    assert len(lines) < 40
    assert sum("self.has_spoon = 1 - me" in line for line in lines) == 2, "each passes it on once"
    assert "… and so on: these " in lines[-3]


def test_the_pictures_have_a_colour_for_each_thread_and_a_legend_of_the_signs_they_use() -> None:
    failure = failure_of(TextbookSubscription)
    for picture in (failure.svg(), failure.html()):
        assert 'class="t0"' in picture
        assert 'class="t1"' in picture
        assert MARKS["▶"] in picture
        assert f">◆ {MARKS['◆']}<" not in picture
        assert f">▶ {MARKS['▶']}<" in picture
    deadlock = failure_of(Exchange).html()
    assert f">◆ {MARKS['◆']}<" in deadlock


def test_threads_timers_and_pools_have_names_of_their_own() -> None:
    class Started:
        def __init__(self) -> None:
            self.n = 0

        def add(self) -> None:
            self.n += 1

        def expire(self) -> None:
            self.n += 1

        def actor_a(self) -> None:
            timer, thread = threading.Timer(0, self.expire), threading.Thread(target=self.add)
            with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
                one.submit(self.add)
                other.submit(self.add)
                timer.start()
                thread.start()
                timer.join()
                thread.join()

        def at_end(self) -> None:
            raise AssertionError(self.n)

    assert {"pool-0", "pool2-0", "timer 4 (expire)", "thread 5 (add)"} <= {
        step.name for step in failure_of(Started).steps
    }


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
