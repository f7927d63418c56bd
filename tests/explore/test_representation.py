"""How a result looks where it is shown by itself: at a prompt, and in a notebook."""

from __future__ import annotations

import pytest

from examples.hazards import lesson
from reactive_runtime.errors import MissingDependencyError
from reactive_runtime.explore import Failure, explore


def test_at_a_prompt_a_result_is_a_line() -> None:
    result = explore(lesson("lost_update").broken)
    assert repr(result) == f"<Result: {result}>"
    assert repr(explore(lesson("lost_update").fixed)).startswith("<Result: LockedCounter: exhausted")
    assert len(repr(result)) < 200
    assert "\n" not in repr(result)


def test_at_a_prompt_a_failure_is_a_line() -> None:
    failure = explore(lesson("lost_update").broken).failure
    assert repr(failure) == "<Failure of Counter: invariant: two were added, and the count is 1>"


def test_in_a_notebook_a_result_is_its_verdict_and_its_schedule() -> None:
    result = explore(lesson("lost_update").broken)
    assert result.failure is not None
    shown = result._repr_html_()
    assert shown.startswith(f"<p>{result}</p>")
    assert shown.endswith(result.failure.html())
    assert "<figure" not in explore(lesson("lost_update").fixed)._repr_html_()


def test_in_a_notebook_what_a_program_says_is_escaped() -> None:
    class Marked:
        def actor_a(self) -> None:
            raise AssertionError("<b>bold</b>")

    shown = explore(Marked)._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown


def test_without_jinja_a_notebook_has_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = explore(lesson("lost_update").broken).failure
    assert failure is not None

    def missing(self: Failure) -> str:
        raise MissingDependencyError("no Jinja2")

    monkeypatch.setattr(Failure, "html", missing)
    assert failure._repr_html_().startswith("<pre>")
    assert "# load 0" in failure._repr_html_()
