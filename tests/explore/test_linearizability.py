"""Objects that threads share, against a model: what is broken is found by each seed, what is sound is not accused."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import NIGHT

from reactive_runtime.atomics import AtomicInteger, AtomicReference
from reactive_runtime.errors import ScenarioError
from reactive_runtime.explore import (
    Operation,
    Scenario,
    check_linearizable,
    explore,
    invoke,
    operations_scenario,
    replay,
)
from reactive_runtime.explore._checks.histories import (
    CONSISTENCIES,
    Consistency,
    Entry,
    Invocation,
    Outcome,
    drawn,
    explanation,
)

KEYS = st.integers(0, 1)
VALUES = st.integers(0, 2)

pytestmark = pytest.mark.timeout(240)  # many explorations, on a machine that may have other work


# -- what is checked ------------------------------------------------------------------------------------------


class Store:
    """Keeps the first value of a key: the model."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def put(self, key: int, value: int) -> int | None:
        if key in self.values:
            return self.values[key]
        self.values[key] = value
        return None

    def get(self, key: int) -> int:
        return self.values[key]


class LockedStore(Store):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def put(self, key: int, value: int) -> int | None:
        with self.lock:
            return super().put(key, value)

    def get(self, key: int) -> int:
        with self.lock:
            return super().get(key)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> int:
        self.count += 1
        return self.count

    def get(self) -> int:
        return self.count


class AtomicCounter:
    def __init__(self) -> None:
        self.count = AtomicInteger()

    def add(self) -> int:
        return self.count.add_and_get(1)

    def get(self) -> int:
        return self.count.get()


class Stack:
    """A list that is swapped as a whole."""

    def __init__(self) -> None:
        self.top: AtomicReference[tuple[Any, ...]] = AtomicReference(())

    def push(self, value: int) -> None:
        while True:
            top = self.top.get()
            if self.top.compare_and_set(top, (value, top)):
                return

    def pop(self) -> int | None:
        while True:
            top = self.top.get()
            if not top:
                return None
            if self.top.compare_and_set(top, top[1]):
                value: int = top[0]
                return value


class ForgetfulStack(Stack):
    def pop(self) -> int | None:
        top = self.top.get()
        if not top:
            return None
        self.top.set(top[1])  # whatever was pushed since
        value: int = top[0]
        return value


class StackModel:
    def __init__(self) -> None:
        self.values: list[int] = []

    def push(self, value: int) -> None:
        self.values.append(value)

    def pop(self) -> int | None:
        return self.values.pop() if self.values else None


class Buffered:
    """A register that a thread writes to when it next writes or reads: each thread sees its own order, and no more."""

    def __init__(self) -> None:
        self.value = 0
        self.pending: dict[int, int] = {}

    def write(self, value: int) -> None:
        me = threading.get_ident()
        if me in self.pending:
            self.value = self.pending[me]
        self.pending[me] = value

    def read(self) -> int:
        me = threading.get_ident()
        if me in self.pending:
            self.value = self.pending.pop(me)
        return self.value


class Register:
    def __init__(self) -> None:
        self.value = 0

    def write(self, value: int) -> None:
        self.value = value

    def read(self) -> int:
        return self.value


STORE = {"put": (KEYS, VALUES), "get": (KEYS,)}
COUNTER: dict[str, Any] = {"add": (), "get": ()}
STACK: dict[str, Any] = {"push": (VALUES,), "pop": ()}
REGISTER: dict[str, Any] = {"write": (st.integers(1, 2),), "read": ()}

BROKEN = [(Store, STORE, Store), (Counter, COUNTER, Counter), (ForgetfulStack, STACK, StackModel)]
SOUND = [(LockedStore, STORE, Store), (AtomicCounter, COUNTER, Counter), (Stack, STACK, StackModel)]


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=pytest.mark.nightly)], ids=["1", "20"])
@pytest.mark.parametrize(("make", "operations", "model"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_what_is_broken_is_found_by_each_seed(make: Any, operations: Any, model: Any, seeds: range) -> None:
    for seed in seeds:
        failure = check_linearizable(make, operations, model, seed=seed).failure
        assert failure is not None, seed
        assert failure.message.startswith("not linearizable: ")


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize(("make", "operations", "model"), SOUND, ids=lambda item: getattr(item, "__name__", ""))
def test_what_is_sound_is_not_accused(make: Any, operations: Any, model: Any, consistency: Consistency) -> None:
    programs = 30 if NIGHT else 10
    result = check_linearizable(make, operations, model, consistency=consistency, programs=programs).assert_holds()
    assert result.schedules > 3 * programs


def test_queues_of_the_standard_library_are_sound() -> None:
    class Fifo:
        def __init__(self) -> None:
            self.items: deque[int] = deque()

        def put_nowait(self, item: int) -> None:
            if len(self.items) == 2:
                raise queue.Full
            self.items.append(item)

        def get_nowait(self) -> int:
            if not self.items:
                raise queue.Empty
            return self.items.popleft()

    operations: dict[str, Any] = {"put_nowait": (VALUES,), "get_nowait": ()}
    check_linearizable(lambda: queue.Queue(2), operations, Fifo, programs=30).assert_holds()


def test_an_operation_need_not_be_a_method() -> None:
    key = st.just(0)
    store = Operation((key, VALUES), lambda mapping, key, value: mapping.__setitem__(key, value))
    add = Operation((key,), lambda mapping, key: mapping.__setitem__(key, mapping.get(key, 0) + 1))
    read = Operation((key,), lambda mapping, key: mapping.get(key))
    failure = check_linearizable(dict, {"store": store, "add": add, "read": read}, dict).failure
    assert failure is not None
    assert "add(0) → None" in failure.message


def test_a_program_that_fails_has_been_made_small() -> None:
    failure = check_linearizable(Store, STORE, Store, seed=3).failure
    assert failure is not None
    assert failure.minimal
    assert sum(len(calls) for _, calls in failure.program) == 2
    assert failure.preemptions == 1
    names = {entry.split("(")[0].split()[-1] for entry in failure.message.splitlines() if "├" in entry}
    assert names == {"put"}
    assert "put(0, 0)" in failure.message  # arguments as small as they get


# -- what a failure says --------------------------------------------------------------------------------------


def twice() -> Scenario[Any]:
    return operations_scenario(Counter, Counter, [[invoke("add")], [invoke("add")]], after=[invoke("get")])


def test_the_message_has_the_history_and_how_far_the_model_agrees() -> None:
    failure = explore(twice()).failure
    assert failure is not None
    lines = failure.message.splitlines()
    assert lines[0] == "not linearizable: no order of these calls, one after the other, has these results"
    drawing = [line for line in lines if "├" in line]
    assert sorted(line.split()[0] for line in drawing) == ["a", "after", "b"]
    assert lines[-1].startswith("closest: ")
    assert failure.scenario == "Counter: add() | add() | get()"


def test_a_schedule_of_it_is_replayed() -> None:
    failure = explore(twice()).failure
    assert failure is not None
    again = replay(twice(), failure.token).failure
    assert again is not None
    assert again.message == failure.message


def test_where_no_calls_overlap_it_is_reported_that_this_is_no_race() -> None:
    class Backwards(Counter):
        def add(self) -> int:
            self.count -= 1
            return self.count

    failure = check_linearizable(LockedStore, {"get": (KEYS,)}, Zero).failure
    assert failure is not None
    assert failure.message.startswith("no calls overlapped, and the model has other results: this is no race")
    failure = explore(operations_scenario(Backwards, Counter, [[invoke("add")]])).failure
    assert failure is not None
    assert failure.message.endswith("closest: at first, the model's add() → 1")


class Zero:
    def get(self, key: int) -> int:
        return 0


def test_what_a_call_raises_is_a_result() -> None:
    result = check_linearizable(LockedStore, STORE, Store, programs=20).assert_holds()
    assert result.failure is None
    failure = explore(operations_scenario(LockedStore, Zero, [[invoke("get", 1)]])).failure
    assert failure is not None
    assert "get(1) → raises KeyError(1)" in failure.message


def test_a_container_that_is_returned_is_kept_as_it_was() -> None:
    class Log:
        def __init__(self) -> None:
            self.lines: list[int] = []

        def write(self, line: int) -> list[int]:
            self.lines.append(line)
            return self.lines

    lock = {"write": (VALUES,)}
    scenario = operations_scenario(Log, Log, [[invoke("write", 1), invoke("write", 2)]])
    explore(scenario).assert_holds()
    assert check_linearizable(Log, lock, Log, threads=2, calls=1, programs=10).schedules


# -- the three consistencies ----------------------------------------------------------------------------------


def test_a_write_that_comes_late_is_sequentially_consistent_and_not_linearizable() -> None:
    late = [[invoke("write", 1)], [invoke("read")]]
    scenario = operations_scenario(Buffered, Register, late)
    assert explore(scenario).failure is not None
    for weaker in ("sequentially consistent",):
        explore(operations_scenario(Buffered, Register, late, consistency=weaker)).assert_holds()


def test_a_read_before_an_own_write_is_quiescently_consistent_at_most() -> None:
    entries = [
        Entry("a", Invocation("write", (1,)), 1, 3, Outcome(None)),
        Entry("a", Invocation("read"), 4, 6, Outcome(0)),
        Entry("b", Invocation("read"), 2, 5, Outcome(1)),
    ]
    assert not explanation(entries, Register, "linearizable").complete
    assert not explanation(entries, Register, "sequentially consistent").complete
    assert explanation(entries, Register, "quiescent").complete


# -- the search, against all orders ---------------------------------------------------------------------------


class Mapping(dict[int, int]):
    """A model whose state is that of its base."""

    def put(self, key: int, value: int) -> int | None:
        if key in self:
            return self[key]
        self[key] = value
        return None

    def get(self, key: int) -> int:  # type: ignore[override]
        return self[key]


class Slotted(Store):
    __slots__ = ("more",)


MODELS: list[Callable[[], Any]] = [Store, Mapping, Slotted]


@st.composite
def histories(draw: Any) -> list[Entry]:
    """Calls and returns of up to three threads in any order, with results that may be explained, or not."""
    length = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    turns = draw(st.permutations([thread for thread, calls in enumerate(length) for _ in range(2 * calls)]))
    entries: list[Entry] = []
    running: dict[int, int] = {}
    for moment, thread in enumerate(turns):
        if thread not in running:
            running[thread] = moment
            continue
        name = draw(st.sampled_from(["put", "get"]))
        arguments = (draw(KEYS), draw(KEYS)) if name == "put" else (draw(KEYS),)
        value = draw(st.sampled_from([Outcome(None), Outcome(0), Outcome(1), Outcome(error=KeyError(0))]))
        entries.append(Entry("abc"[thread], Invocation(name, arguments), running.pop(thread), moment, value))
    return entries


def keeps(order: Sequence[Entry], consistency: Consistency, history: Sequence[Entry]) -> bool:
    def first(one: Entry, two: Entry) -> bool:
        if one.returned >= two.called:
            return False
        if consistency == "linearizable":
            return True
        if consistency == "sequentially consistent":
            return one.thread == two.thread
        return any(
            all(entry.returned <= moment or entry.called > moment for entry in history)
            for moment in range(one.returned, two.called)
        )

    return not any(first(two, one) for n, one in enumerate(order) for two in order[n + 1 :])


def agrees(order: Sequence[Entry], model: Callable[[], Any]) -> bool:
    item = model()
    return all(entry.outcome.same_as(Outcome.of(entry.invocation, item)) for entry in order)


@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=150)
@given(history=histories())
def test_an_explanation_is_found_where_some_order_of_all_is_one(
    history: list[Entry], model: Callable[[], Any], consistency: Consistency
) -> None:
    exists = any(
        keeps(order, consistency, history) and agrees(order, model) for order in itertools.permutations(history)
    )
    found = explanation(history, model, consistency)
    assert found.complete == exists
    assert agrees(found.order, model)
    if exists:
        assert keeps(found.order, consistency, history)
        assert sorted(map(id, found.order)) == sorted(map(id, history))
    elif found.refused is not None:
        assert found.refused not in found.order


@settings(max_examples=200)
@given(history=histories())
def test_what_is_linearizable_has_the_two_weaker_consistencies_as_well(history: list[Entry]) -> None:
    if explanation(history, Store, "linearizable").complete:
        assert explanation(history, Store, "sequentially consistent").complete
        assert explanation(history, Store, "quiescent").complete


def test_sixteen_calls_at_once_that_nothing_explains_are_judged_by_the_states_they_lead_to() -> None:
    made = 0

    class Watched(Counter):
        def __init__(self) -> None:
            nonlocal made
            made += 1
            super().__init__()

    history = [Entry(f"t{n}", Invocation("get"), n, 100 + n, Outcome(0)) for n in range(15)]
    history.append(Entry("last", Invocation("get"), 50, 99, Outcome(7)))
    assert not explanation(history, Watched, "linearizable").complete
    assert made < 300_000  # of 15! orders


def test_a_history_is_drawn_a_call_a_line_with_time_to_the_right() -> None:
    history = [
        Entry("a", Invocation("put", (0, 1)), 1, 4, Outcome(None)),
        Entry("b", Invocation("get", (0,)), 2, 3, Outcome(error=KeyError(0))),
    ]
    assert drawn(history).splitlines() == [
        "a  put(0, 1) → None             ├────────┤",
        "b  get(0) → raises KeyError(0)     ├──┤",
    ]


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threads": 1}, "threads must be 2 to 4, not 1"),
        ({"threads": 5}, "threads must be 2 to 4, not 5"),
        ({"calls": 0}, "calls must be 1 to 4, not 0"),
        ({"programs": 0}, "programs must be 1 or more, not 0"),
        ({"schedules": True}, "schedules must be 1 or more, not True"),
        ({"consistency": "eventual"}, "consistency must be one of linearizable, sequentially consistent, quiescent"),
        ({"points": "none"}, "points must be one of"),
    ],
)
def test_what_is_out_of_its_range_is_reported(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_linearizable(Counter, COUNTER, Counter, **options)


def test_a_method_that_is_not_there_is_reported() -> None:
    class Waiting(Counter):
        async def get(self) -> int:  # type: ignore[override]
            return self.count

    with pytest.raises(ScenarioError, match="there are no operations"):
        check_linearizable(Counter, {}, Counter)
    with pytest.raises(ScenarioError, match="the object, a Counter, has no method 'pop'"):
        check_linearizable(Counter, {"pop": ()}, StackModel)
    with pytest.raises(ScenarioError, match="the model, a StackModel, has no method 'add'"):
        check_linearizable(Counter, {"add": ()}, StackModel)
    with pytest.raises(ScenarioError, match="'get' of the object, a Waiting, is a coroutine function"):
        check_linearizable(Waiting, {"get": ()}, Counter)
    with pytest.raises(ValueError, match="1 to 4 lists of calls are needed, not 0"):
        operations_scenario(Counter, Counter, [])


@pytest.mark.parametrize("works", [0, 1, 2, 7])
def test_an_object_that_can_not_be_made_ends_the_search_at_once(works: int) -> None:
    made = 0

    def make() -> Counter:
        nonlocal made
        made += 1
        if made > works:
            raise OSError("no disk")
        return Counter()

    with pytest.raises(ScenarioError, match="raised OSError: no disk"):
        check_linearizable(make, COUNTER, Counter)
    assert made <= works + 2  # what it is made of is looked at once more


def test_an_object_that_is_not_the_same_each_time_is_reported() -> None:
    made = 0

    class Mending(AtomicCounter):
        def add(self) -> int:
            return super().add() if made > 4 else 0

    def make() -> AtomicCounter:
        nonlocal made
        made += 1
        return Mending()

    result = check_linearizable(make, {"add": ()}, Counter, schedules=2)
    assert (result.verdict.kind, result.holds) == ("incomplete", False)
    assert "does not do the same each time" in result.uncontrolled
