"""Each operator has a picture, made of a run that keeps the rules, and it is the same in two runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from docs._site import names
from docs._site.drawing import svg
from docs._site.examples import EXAMPLES, WITHOUT
from docs._site.recording import Example, run


def test_every_operator_of_flow_has_a_picture() -> None:
    kinds = {member.name: member.kind for member in names.members()}
    assert {*EXAMPLES, *WITHOUT} == set(kinds)
    assert "operator" not in {kinds[name] for name in WITHOUT}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_picture_is_the_same_in_two_runs(name: str) -> None:
    first, second = (svg(name, run(EXAMPLES[name])) for _ in range(2))
    assert first == second
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert f".{name}(" in EXAMPLES[name].code  # the example of an operator has that operator in it


def drawn(example: Example) -> list[str]:
    """What happened on which line."""
    return [
        f"{event.line.label if event.line else ''} {event.what} {event.text}".strip() for event in run(example).events
    ]


def test_what_is_drawn_is_what_happened() -> None:
    assert drawn(Example("a.take(2)", "123|", demand=1)) == [
        "subscribe",
        "request 1",
        "a subscribe",
        "a request 1",
        "a next 1",
        "next 1",
        "request 1",
        "a request 1",
        "a next 2",
        "next 2",
        "request 1",
        "a cancel",
        "complete",
    ]


def test_a_thread_has_a_colour_of_its_own() -> None:
    threads = {event.thread for event in run(EXAMPLES["publish_on"]).events}
    assert threads == {"caller", "io"}
    picture = svg("publish_on", run(EXAMPLES["publish_on"]))
    assert 'class="t0"' in picture
    assert 'class="t1"' in picture


def test_no_picture_is_made_of_a_run_that_breaks_a_rule() -> None:
    pushes = "emitters.append(TestPublisher(breaks='1.1')) or emitters[0]"
    with pytest.raises(AssertionError, match=r"rule='1\.1'"):
        run(Example(pushes, demand=1, pause=5, at=((1, "emitters[0].emit(1, 2, 3)"),)))
