"""`Acked` and `InOrder`: an element is settled once, and positions are committed in order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sinks import PATIENCE

from reactive_runtime.connect import Acked, InOrder, NotHandledError
from reactive_runtime.connect._elements.acked import Parts, claim_of, joined


def noted() -> tuple[list[BaseException | None], Acked[str]]:
    settled: list[BaseException | None] = []
    return settled, Acked("a", settled.append)


def test_an_element_is_acknowledged_once() -> None:
    settled, element = noted()
    assert [element.acknowledge(), element.acknowledge(), element.refuse()] == [True, False, False]
    assert settled == [None]
    assert element.settled


def test_an_element_is_refused_with_its_error_or_with_one_that_says_it_was_dropped() -> None:
    settled, element = noted()
    error = OSError("no disk")
    assert element.refuse(error)
    assert settled == [error]
    settled, element = noted()
    assert element.refuse()
    (why,) = settled
    assert isinstance(why, NotHandledError)
    assert str(why) == "the element was dropped before it was handled"


def test_another_value_has_the_same_claim() -> None:
    settled, element = noted()
    other = element.with_value(7)
    assert (other.value, other.acknowledge(), element.refuse()) == (7, True, False)
    assert settled == [None]


def test_an_element_shows_its_value_and_whether_it_is_settled() -> None:
    _, element = noted()
    assert repr(element) == "Acked('a')"
    element.acknowledge()
    assert repr(element) == "Acked('a', settled)"


def test_an_error_of_the_source_goes_to_the_one_who_acknowledges() -> None:
    def settle(error: BaseException | None) -> None:
        raise ConnectionError("the server is down")

    element = Acked("a", settle)
    with pytest.raises(ConnectionError, match="the server is down"):
        element.acknowledge()
    assert not element.acknowledge()  # it was settled, as far as that is known here


def test_joined_claims_are_all_settled_also_where_one_raises() -> None:
    settled, element = noted()

    def settle(error: BaseException | None) -> None:
        raise ConnectionError("the server is down")

    claim = joined([claim_of(Acked("b", settle)), claim_of(element)])
    with pytest.raises(ConnectionError):
        claim.settle(None)
    assert settled == [None]


@pytest.mark.parametrize("wrong", [None, 7, "ack"])
def test_what_can_not_be_called_is_no_way_to_settle(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"Acked: settle must be"):
        Acked("a", wrong)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_parts_settle_their_message_with_the_first_error(outcomes: list[bool], chance: Any) -> None:
    settled: list[BaseException | None] = []
    parts = Parts(settled.append)
    claims = [(parts.part(), None if good else OSError(number)) for number, good in enumerate(outcomes)]
    chance.shuffle(claims)
    for claim, error in claims[:-1]:
        claim.settle(error)
    assert settled == []
    claims[-1][0].settle(claims[-1][1])
    errors = [error for _, error in claims if error is not None]
    assert settled == [errors[0] if errors else None]


@given(st.permutations(range(8)), st.sets(st.integers(0, 7)))
def test_positions_are_committed_in_order_up_to_the_first_that_is_not_handled(order: list[int], bad: set[int]) -> None:
    commits: list[int] = []
    refused: list[int] = []
    positions: InOrder[int] = InOrder(commits.append, refused=lambda position, _: refused.append(position))
    elements = [positions.element(str(n), n) for n in range(8)]
    handled: set[int] = set()
    for n in order:
        if n in bad:
            elements[n].refuse()
        else:
            elements[n].acknowledge()
            handled.add(n)
        prefix = next(k for k in range(9) if k not in handled)
        assert commits[-1:] == ([prefix - 1] if prefix else [])
    assert commits == sorted(set(commits))
    assert refused == [n for n in order if n in bad][:1]
    assert positions.open == 8 - next(k for k in range(9) if k not in handled)


def test_a_commit_that_another_thread_adds_to_is_made_by_the_thread_that_commits() -> None:
    """No two commits at once, and none with an earlier position after a later one."""
    commits: list[int] = []
    inside, go_on = threading.Event(), threading.Event()

    def commit(position: int) -> None:
        commits.append(position)
        if position == 0:
            inside.set()
            assert go_on.wait(60)

    positions: InOrder[int] = InOrder(commit)
    elements = [positions.element(n, n) for n in range(3)]
    first = threading.Thread(target=elements[0].acknowledge)
    first.start()
    assert inside.wait(60)
    assert elements[1].acknowledge()
    assert elements[2].acknowledge()
    assert commits == [0]
    go_on.set()
    first.join()
    assert commits == [0, 2]


def test_a_commit_that_fails_is_made_up_for_by_the_next() -> None:
    commits: list[int] = []

    def commit(position: int) -> None:
        if position == 0:
            raise ConnectionError("the server is down")
        commits.append(position)

    positions: InOrder[int] = InOrder(commit)
    first, second = positions.element("a", 0), positions.element("b", 1)
    with pytest.raises(ConnectionError):
        first.acknowledge()
    assert second.acknowledge()
    assert commits == [1]


def test_what_is_handled_during_a_commit_that_fails_is_committed() -> None:
    commits: list[int] = []
    begun, goes_on = threading.Event(), threading.Event()

    def commit(position: int) -> None:
        if position == 0:
            begun.set()
            assert goes_on.wait(PATIENCE)
            raise OSError("no connection")
        commits.append(position)

    positions: InOrder[int] = InOrder(commit)
    elements = [positions.element("", n) for n in range(3)]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(elements[0].acknowledge)
        assert begun.wait(PATIENCE)
        assert elements[1].acknowledge()
        assert elements[2].acknowledge()
        goes_on.set()
        with pytest.raises(OSError, match="no connection"):
            first.result(PATIENCE)
    assert commits == [2]
