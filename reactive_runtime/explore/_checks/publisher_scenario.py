"""Explores any publisher: a subscriber that notes every signal, threads that call its subscription, the rules as judge.

    explore_publisher(lambda: MyPublisher(), actors=[request(1), request(MAX_DEMAND), cancel()]).assert_holds()

The subscriber subscribes in the set-up. Each actor is a thread that makes one call, or several. Every signal begins
with a point, and `on_next` has another inside, so that signals which overlap (1.3) are seen to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from reactive_runtime import hooks
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._spec import MAX_DEMAND, Publisher, Subscription
from reactive_runtime.errors import MissingDependencyError
from reactive_runtime.explore._checks.scenario import Scenario, judge, nothing
from reactive_runtime.explore._exploration import explore
from reactive_runtime.explore._results import BrokenRule, Result
from reactive_runtime.explore._standins import instrumented
from reactive_runtime.testing._checker import RuleChecker
from reactive_runtime.testing._records import Record, Signal, allowed_late
from reactive_runtime.testing._rule_checks import RULES

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "Call",
    "Driven",
    "call",
    "cancel",
    "explore_publisher",
    "programs",
    "publisher_scenario",
    "request",
    "subscribe",
]


@dataclass(frozen=True)
class Call:
    """Something that an actor does.

    Args:
        name: How it is shown.
        make: Called with the state, on the thread of the actor.
    """

    name: str
    make: Callable[[Driven], object]

    def __call__(self, driven: Driven) -> object:
        """Make the call.

        Args:
            driven: The state.

        Returns:
            What the call returns, which is ignored.
        """
        return self.make(driven)

    def __repr__(self) -> str:
        return self.name


def request(n: Any) -> Call:
    """`subscription.request(n)`.

    Args:
        n: Any `n`, also such as are not allowed (3.9).

    Returns:
        A call for an actor.
    """
    shown = "MAX_DEMAND" if n == MAX_DEMAND and n is not True else repr(n)
    return Call(f"request({shown})", lambda driven: driven.first.request(n))


def cancel() -> Call:
    """`subscription.cancel()`.

    Returns:
        A call for an actor.
    """
    return Call("cancel()", lambda driven: driven.first.cancel())


def subscribe(demand: int = 0) -> Call:
    """A further subscriber.

    Args:
        demand: Is requested in its `on_subscribe`; 0: nothing is.

    Returns:
        A call for an actor.
    """
    return Call(f"subscribe({demand})", lambda driven: driven.subscribe(demand))


def call(name: str, make: Callable[[Driven], object]) -> Call:
    """Anything else: `call("close()", lambda driven: driven.publisher.close())`.

    Args:
        name: How it is shown.
        make: Called with the state, on the thread of the actor.

    Returns:
        A call for an actor.
    """
    return Call(name, make)


Program = Sequence[Call | Sequence[Call]] | Mapping[str, Call | Sequence[Call]]


class Driven:
    """The state of the scenario: a publisher, its subscribers, and what passed between them."""

    def __init__(self, factory: Callable[[], Publisher[Any]], options: _Options) -> None:
        self._options = options
        self._tick = 0
        self._tape = instrumented.Location()
        self.records: list[Record] = []
        """What was signalled, in order of its beginning, from all subscriptions."""
        self.dropped: list[hooks.Dropped] = []
        """What went to the hook of what can't be delivered."""
        self.before: hooks.Handler = hooks.set_handler(self.dropped.append)
        self.subscribers: list[_Subscriber] = []
        self.publisher: Any = factory()  # what a step calls on it, beside `subscribe`, is its own
        self.first: _Subscriber = self.subscribe(options.demand)
        """The subscriber that subscribed in the set-up."""

    def subscribe(self, demand: int = 0) -> _Subscriber:
        """Subscribe a further subscriber.

        Args:
            demand: Is requested in its `on_subscribe`; 0: nothing is.

        Returns:
            The subscriber, which notes what is signalled to it.
        """
        subscriber = _Subscriber(self, len(self.subscribers), demand)
        self.subscribers.append(subscriber)
        subscriber.noted(Signal.SUBSCRIBE, partial(self.publisher.subscribe, subscriber))
        return subscriber

    @property
    def elements(self) -> list[Any]:
        """The elements that came to the first subscriber."""
        return self.first.elements

    def ticket(self) -> int:
        """Draw the next ticket.

        Returns:
            A number above all that were drawn before.
        """
        self._tick += 1
        return self._tick

    def point(self, text: str) -> None:
        """A point of choice, at a signal: another thread may go on.

        Args:
            text: How the step is shown.
        """
        me = instrumented.caller()
        if me is None:
            return
        scheduler = instrumented.running()
        if scheduler.aborting:
            scheduler.pass_through(me)
            return
        if scheduler.step_log is not None:
            scheduler.step_log.say(me, text)
        instrumented.point(scheduler, me, self._tape, text)
        me.acts += 1
        instrumented.met(scheduler, me, self._tape)
        instrumented.left(scheduler, me, self._tape)

    def judge(self) -> None:
        """Judge all that was signalled.

        Raises:
            BrokenRule: Names the first rule that was broken.
        """
        checker = RuleChecker(late_signals=self._options.late_signals, context=8)
        for subscriber in self.subscribers:
            subscriber.note(Signal.SETTLED)
        for record in sorted(self.records, key=lambda record: record.begin):
            checker.feed(record)
        for violation in checker.violations:
            raise BrokenRule(violation.rule, f"rule {violation.rule}: {RULES[violation.rule]}; {violation.seen}")

    def close(self) -> None:
        """Put the hook's handler back, after the run."""
        hooks.set_handler(self.before)


class _Subscriber:
    """Notes what is signalled to it, and what is called through it."""

    def __init__(self, driven: Driven, number: int, demand: int) -> None:
        self._driven = driven
        self._number = number
        self._demand = demand
        self._subscription: Subscription | None = None
        self.elements: list[Any] = []
        self.error: BaseException | None = None
        self.completed = False

    def noted(self, signal: Signal, make: Callable[[], object], n: Any = None, value: Any = None) -> None:
        """Note a call in either direction, with its beginning and end."""
        driven = self._driven
        options = driven._options
        text = f"{signal.value}({value if signal is Signal.ON_NEXT else '' if n is None else n})"
        driven.point(text)
        begin = driven.ticket()
        at = len(driven.records)
        me = instrumented.caller()
        thread = 0 if me is None else me.index
        wrong = type(n) is not int
        record = Record(
            "explore", "", self._number, True, options.ascending, options.elements, thread, signal.value,
            None if wrong else n, begin, None, 0, None, value if type(value) is int else None, None,
        )  # fmt: skip
        driven.records.append(record)
        error = None
        try:
            make()
        except Exception as raised:
            error = f"raised {type(raised).__name__}: {raised}"
        finally:
            driven.records[at] = record._replace(end=driven.ticket(), end_ns=0, error=error)

    def note(self, signal: Signal) -> None:
        """Note something that takes no time."""
        driven = self._driven
        options = driven._options
        begin, end = driven.ticket(), driven.ticket()
        driven.records.append(
            Record("explore", "", self._number, True, options.ascending, options.elements, 0, signal.value, None,
                   begin, end, 0, 0, None, None)
        )  # fmt: skip

    # -- as a subscriber ---------------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.noted(Signal.ON_SUBSCRIBE, partial(self._on_subscribe, subscription))

    def _on_subscribe(self, subscription: Subscription) -> None:
        self._subscription = subscription
        if self._demand:
            self.request(self._demand)

    def on_next(self, element: Any, /) -> None:
        self.noted(Signal.ON_NEXT, partial(self._on_next, element), value=element)

    def _on_next(self, element: Any) -> None:
        self.elements.append(element)
        self._driven.point("inside of on_next")
        for make in self._driven._options.inside.get(len(self.elements), ()):
            make(self._driven)

    def on_error(self, error: BaseException, /) -> None:
        self.noted(Signal.ON_ERROR, partial(setattr, self, "error", error))

    def on_complete(self) -> None:
        self.noted(Signal.ON_COMPLETE, partial(setattr, self, "completed", True))

    # -- as a subscription -------------------------------------------------------------------------------------

    def request(self, n: Any) -> None:
        """Pass the request on, and note it."""
        if self._subscription is not None:
            self.noted(Signal.REQUEST, partial(self._subscription.request, n), n=n)

    def cancel(self) -> None:
        """Pass the cancel on, and note it."""
        if self._subscription is not None:
            self.noted(Signal.CANCEL, self._subscription.cancel)


@dataclass(frozen=True)
class _Options:
    demand: int
    elements: int | None
    ascending: bool
    late_signals: int
    inside: Mapping[int, Sequence[Call]] = field(default_factory=dict)


def publisher_scenario(
    factory: Callable[[], Publisher[Any]],
    actors: Program,
    *,
    demand: int = 0,
    elements: int | None = None,
    ascending: bool = True,
    late_signals: int = 1,
    inside: Mapping[int, Call | Sequence[Call]] | None = None,
    at_end: Callable[[Driven], object] = nothing,
    finish: Callable[[Driven], object] = nothing,
    parts: Sequence[Any] = (),
) -> Scenario[Driven]:
    """The scenario that `explore_publisher` explores.

    Args:
        factory: Makes the publisher, in the set-up of each schedule.
        actors: As `explore_publisher` takes them.
        demand: Is requested inside `on_subscribe`.
        elements: How many the publisher has. None: that is not known.
        ascending: Whether the elements are ints, each larger than the one before.
        late_signals: How many may come after a `cancel` from outside has returned (1.8), 0 to 15.
        inside: Calls that are made inside the n-th `on_next`, by n.
        at_end: A further invariant.
        finish: Called when the actors have returned, before anything is judged.
        parts: Functions and classes whose modules are looked at as well.

    Returns:
        The scenario, for `explore` and `replay`.

    Raises:
        TypeError: `elements` or `late_signals` is no int.
        ValueError: `elements` is below 0, or `late_signals` is not from 0 to 15.
    """
    _in_range("publisher_scenario", elements, late_signals)
    named = actors if isinstance(actors, Mapping) else {_name(n): actor for n, actor in enumerate(actors)}
    calls = {name: [item] if isinstance(item, Call) else list(item) for name, item in named.items()}
    within = {n: [item] if isinstance(item, Call) else list(item) for n, item in (inside or {}).items()}
    options = _Options(demand, elements, ascending, late_signals, within)

    def judged(driven: Driven) -> None:
        finish(driven)
        driven.judge()
        judge(at_end, driven)

    name = getattr(factory, "__qualname__", type(factory).__name__)
    return Scenario(
        lambda: Driven(factory, options),
        calls,
        judged,
        name=name,
        parts=[factory, at_end, finish, *parts],
        tear_down=Driven.close,
    )


def _in_range(where: str, elements: int | None, late_signals: int) -> None:
    """TypeError or ValueError where one is no int of its range: said where a publisher is explored, not in its runs."""
    if elements is not None:
        at_least(where, "elements", 0, elements)
    allowed_late(where, late_signals)


def _name(number: int) -> str:
    """The name of an actor by its number: A, B, … Z, A1, B1 and so on."""
    round_, letter = divmod(number, 26)
    return f"{chr(ord('A') + letter)}{round_ or ''}"


def explore_publisher(
    factory: Callable[[], Publisher[Any]],
    actors: Program,
    *,
    demand: int = 0,
    elements: int | None = None,
    ascending: bool = True,
    late_signals: int = 1,
    inside: Mapping[int, Call | Sequence[Call]] | None = None,
    at_end: Callable[[Driven], object] = nothing,
    finish: Callable[[Driven], object] = nothing,
    **options: Any,
) -> Result:
    """Explore the publisher that `factory` makes, called by `actors`, and judge every schedule by the rules.

    Args:
        factory: Makes the publisher, in the set-up of each schedule, on the main thread; pools, threads and timers that
            it makes are part of the program.
        actors: Each is a call, or a list of calls that one thread makes: `request(n)`, `cancel()`, `subscribe()`,
            `call(name, function)`. A mapping gives the threads names.
        demand: Is requested inside `on_subscribe`.
        elements: How many the publisher has: then none may be missing at `on_complete`. None: that is not known.
        ascending: Whether the elements are ints, each larger than the one before.
        late_signals: How many may come after a `cancel` from outside has returned (1.8), 0 to 15.
        inside: `{2: cancel()}` makes a call from inside the second `on_next`.
        at_end: A further invariant: it fails by raising or by returning False.
        finish: Called when the actors have returned, before anything is judged, to end what would go on.
        **options: Those of `explore`.

    Returns:
        As `explore`.

    Raises:
        TypeError: `elements` or `late_signals` is no int.
        ValueError: `elements` is below 0, or `late_signals` is not from 0 to 15; as `explore`, for its options.
        ScenarioError: `factory` raises.
        ExploreError: As `explore`.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.explore import cancel, explore_publisher, request
        >>> actors = [request(1), request(2)]
        >>> result = explore_publisher(lambda: Flow.range(3), actors, elements=3, strategy="bounded", bound=2)
        >>> str(result.assert_holds().verdict)
        'exhausted within 2 preemptions'
    """
    _in_range("explore_publisher", elements, late_signals)
    scenario = publisher_scenario(
        factory, actors, demand=demand, elements=elements, ascending=ascending, late_signals=late_signals,
        inside=inside, at_end=at_end, finish=finish,
    )  # fmt: skip
    return explore(scenario, **options)


def programs(calls: Iterable[Call] = (), *, actors: int = 2, length: int = 2) -> SearchStrategy[list[list[Call]]]:
    """Programs for `explore_publisher`, as a strategy of hypothesis.

    Args:
        calls: The calls that are drawn from. None given: requests of 1, 2, MAX_DEMAND and 0, and a cancel.
        actors: A program has 1 to so many threads.
        length: Each thread makes 1 to so many calls.

    Returns:
        A strategy, whose examples are the argument `actors` of `explore_publisher`.

    Raises:
        MissingDependencyError: hypothesis is not installed.
    """
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise MissingDependencyError("programs are generated by hypothesis: pip install hypothesis") from error
    choices = list(calls) or [request(1), request(2), request(MAX_DEMAND), request(0), cancel()]
    actor = strategies.lists(strategies.sampled_from(choices), min_size=1, max_size=length)
    return strategies.lists(actor, min_size=1, max_size=actors)
