"""The checks of a publisher in the states in which a call may come.

The rules of `request` and `cancel` hold at any time: inside `on_subscribe`, inside `on_next`, at a later element, with
unbounded demand, on another thread while a signal runs. A publisher has separate code for many of these states, and
the kit of the JVM mostly calls from outside, before the first element.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Publisher
from reactive_runtime.tck._factories import PublisherFactory
from reactive_runtime.tck._publisher.probes import ManualSubscriber, at_its_turn
from reactive_runtime.tck._running.environment import TestEnvironment, started
from reactive_runtime.tck._running.failures import shown
from reactive_runtime.tck._verification import check

__all__ = ["StatePublisherChecks"]

T = TypeVar("T")

Act = Callable[[ManualSubscriber[Any]], object]

THIRD = 3
"""The element at which the first of three subscribers acts; the next two act at the second and the first."""

FAR = 1_000
"""Elements of a stream that a publisher need not finish after an early cancel."""


class StatePublisherChecks(PublisherFactory[T]):
    """The checks whose names say when a call comes."""

    # -- 1.1: demand -------------------------------------------------------------------------------------------

    @check("1.1", plain=10)
    def extra_spec101_each_of_many_requests_must_be_met_exactly(self, env: TestEnvironment) -> None:
        """Ten requests of 1 and 2 in turn, and then five of 3, are met by as many elements, and no more."""
        subscriber = self._subscribe(env, self._publisher(env, 31))
        for n in (*(1, 2) * 5, *(3,) * 5):
            subscriber.request(n)
            subscriber.next_elements(n)
        subscriber.expect_none("thirty elements were requested, and came")

    @check("1.1", plain=6)
    def extra_spec101_demand_of_one_subscriber_must_not_serve_another(self, env: TestEnvironment) -> None:
        """Of two subscribers one requests five elements; the other one, that requested none, gets none."""
        publisher = self._publisher(env, 6)
        idle = self._subscribe(env, publisher, may_fail=True)
        busy = self._subscribe(env, publisher, may_fail=True)
        busy.request(5)
        env.happens(lambda: len(busy.elements) >= 5 or busy.ends, env.settings.default_no_signals_timeout)
        if len(busy.elements) < 5:
            self._needs_two_subscribers_at_once(env)
        idle.expect_none("it has requested nothing, another subscriber has")

    # -- 1.3: one after the other ------------------------------------------------------------------------------

    @check("1.3", plain=5)
    def extra_spec103_a_signal_must_wait_until_the_one_before_has_returned(self, env: TestEnvironment) -> None:
        """Each of five signals, on_subscribe too, takes a moment, in which no other one begins on another thread."""
        linger = self._lingers(env)

        def ask(subscriber: ManualSubscriber[T]) -> None:
            subscriber.ask(2)
            linger(subscriber)

        subscriber = self._subscribe(env, self._publisher(env, 5), subscribed=ask, then=linger)
        subscriber.request(3)
        subscriber.next_elements(5)
        env.happens(lambda: subscriber.ends, env.settings.default_no_signals_timeout)

    @check("1.3", plain=2)
    def extra_spec103_an_element_must_wait_until_on_subscribe_has_returned(self, env: TestEnvironment) -> None:
        """Inside on_subscribe an element is requested, and one on another thread, where none begins beside it."""
        self._needs_concurrent_requests(env)

        def both(subscriber: ManualSubscriber[T]) -> None:
            subscriber.ask(1)
            other = started(partial(subscriber.ask, 1), "tck-elsewhere")
            other.join(env.settings.call_timeout / 2)  # another check judges whether a request may wait (3.4)
            env.happens_quietly(lambda: len(set(subscriber.inside)) > 1, env.settings.default_poll_timeout)

        subscriber = self._subscribe(env, self._publisher(env, 3), subscribed=both)
        subscriber.next_elements(2)

    @check("3.8", plain=6)
    def extra_spec308_demand_must_add_up_whenever_it_comes(self, env: TestEnvironment) -> None:
        """Two requests inside on_subscribe, six inside an on_next, and two from outside give 14 elements."""

        def twice(subscriber: ManualSubscriber[T]) -> None:
            subscriber.ask(2)
            subscriber.ask(1)

        def later(subscriber: ManualSubscriber[T]) -> None:
            for _ in range(6):
                subscriber.ask(1)

        def all_of_them(subscriber: ManualSubscriber[T]) -> None:
            subscriber.next_elements(9)
            subscriber.request(2)
            subscriber.request(3)
            subscriber.next_elements(5)

        publisher = self._publisher(env, 20)
        for subscriber in self._thrice(env, publisher, all_of_them, subscribed=twice, then=at_its_turn(later)):
            subscriber.expect_none_now("fourteen elements were requested, and came")

    # -- 1.4, 1.7: the end -------------------------------------------------------------------------------------

    @check("1.4", plain=3)
    def extra_spec104_must_signal_on_error_also_where_all_was_requested(self, env: TestEnvironment) -> None:
        """A stream of which MAX_DEMAND was requested, and which fails after three elements, signals `on_error`."""
        subscriber = self._subscribe(env, self._publisher_failing_after(env, 3), may_fail=True)
        subscriber.request(MAX_DEMAND)
        subscriber.expect_failure_after(3)

    @check("1.7", plain=3)
    def extra_spec107_a_stream_must_end_once_whatever_is_called_in_its_end(self, env: TestEnvironment) -> None:
        """A request inside the last `on_next`, one from another thread beside it, and a cancel, give one end."""
        gate, asked = threading.Event(), threading.Event()

        def at_the_last(subscriber: ManualSubscriber[T], element: T) -> None:
            if len(subscriber.elements) == 3:
                subscriber.ask(5)
                gate.set()
                asked.wait(env.settings.call_timeout)

        def beside() -> None:
            gate.wait(2 * env.settings.call_timeout)
            if self.requests_may_be_concurrent:
                subscriber.ask(5)
            asked.set()

        subscriber = self._subscribe(env, self._publisher(env, 3, completes=True), then=at_the_last)
        other = started(beside, "tck-beside")
        subscriber.request(2)
        subscriber.request(1)
        subscriber.next_elements(3)
        gate.set()
        other.join(env.settings.call_timeout)
        subscriber.expect_completion()
        subscriber.request(1)
        subscriber.expect_none("the stream has ended")

    # -- 3.6, 3.12, 1.8: a cancel ------------------------------------------------------------------------------

    @check("3.6", plain=THIRD)
    def extra_spec306_a_request_after_a_cancel_inside_on_next_must_be_a_nop(self, env: TestEnvironment) -> None:
        """Inside the third, second or first `on_next`, a cancel, and then a request: no further signal comes."""

        def then(subscriber: ManualSubscriber[T]) -> None:
            subscriber.quit()
            subscriber.quit()
            subscriber.ask(10)

        self._nothing_after(env, then)

    @check("3.6", plain=THIRD)
    def extra_spec306_a_request_after_a_cancel_must_be_a_nop_while_a_signal_runs(self, env: TestEnvironment) -> None:
        """While an `on_next` runs, another thread cancels, and requests: no further signal comes."""

        def both(subscriber: ManualSubscriber[T]) -> None:
            subscriber.quit()
            subscriber.quit()
            if self.requests_may_be_concurrent:
                subscriber.ask(10)

        self._nothing_after(env, lambda subscriber: self._elsewhere(env, subscriber, both))

    def _nothing_after(self, env: TestEnvironment, act: Act) -> None:
        """`act` runs inside the `on_next` of the last element that was requested."""
        done = threading.Event()

        def then(subscriber: ManualSubscriber[T]) -> None:
            act(subscriber)
            done.set()

        def to_its_turn(subscriber: ManualSubscriber[T]) -> None:
            done.clear()
            subscriber.request(subscriber.turn)
            subscriber.next_elements(subscriber.turn)
            done.wait(env.settings.call_timeout)  # a request before the cancel has returned would be in order
            subscriber.request(1)

        for subscriber in self._thrice(env, self._publisher(env, 20), to_its_turn, then=at_its_turn(then)):
            subscriber.expect_none_now(f"the subscription was cancelled inside on_next number {subscriber.turn}")

    @check("3.6", plain=THIRD)
    def extra_spec306_an_invalid_request_after_a_cancel_must_be_a_nop(self, env: TestEnvironment) -> None:
        """After a cancel, `request(0)` is answered with no signal: 3.9 is about subscriptions not cancelled."""

        def leave(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(subscriber.turn)
            subscriber.next_elements(subscriber.turn)
            subscriber.cancel()

        cancelled = self._thrice(env, self._publisher(env, 20), leave)  # and waits: a publisher may hear it late (3.12)
        for subscriber in cancelled:
            subscriber.request(0)
        env.silence(lambda: sum(subscriber.count for subscriber in cancelled))
        for subscriber in cancelled:
            subscriber.expect_none_now("the subscription was cancelled")

    @check("3.12", plain=THIRD)
    def extra_spec312_a_cancel_inside_on_subscribe_must_be_heard(self, env: TestEnvironment) -> None:
        """After a cancel inside `on_subscribe`, and a request of all there, the stream stops before its end."""

        def leave(subscriber: ManualSubscriber[T]) -> None:
            subscriber.quit()  # first: inside of request a publisher may signal all
            subscriber.quit()
            subscriber.ask(MAX_DEMAND)

        self._stops(env, "inside on_subscribe", subscribed=leave)

    @check("3.12", plain=THIRD)
    def extra_spec312_a_cancel_inside_on_subscribe_must_be_heard_by_later_requests(self, env: TestEnvironment) -> None:
        """After a cancel inside `on_subscribe`, or outside, requests from outside are answered with no signal."""

        def ask(subscriber: ManualSubscriber[T]) -> None:
            for _ in range(2):
                subscriber.request(1)

        def leave(subscriber: ManualSubscriber[T]) -> None:
            subscriber.cancel()
            ask(subscriber)

        inside = self._serve(env, self._publisher(env, 3), ask, subscribed=lambda item: item.quit())
        outside = self._serve(env, self._publisher(env, 3), leave)
        for subscriber in self._until_silent(env, inside + outside):
            subscriber.expect_none_now("the subscription was cancelled before any request")

    @check("3.12", plain=THIRD)
    def extra_spec312_a_cancel_from_another_thread_must_be_heard(self, env: TestEnvironment) -> None:
        """While the third, second or first `on_next` runs, another thread cancels: the stream stops before its end."""

        def leave(subscriber: ManualSubscriber[T]) -> None:
            self._elsewhere(env, subscriber, lambda item: item.quit())

        self._stops(env, "from another thread, while on_next was running", then=at_its_turn(leave))

    @check("3.12", plain=THIRD)
    def extra_spec312_a_cancel_before_the_demand_is_used_up_must_be_heard(self, env: TestEnvironment) -> None:
        """With a demand of many elements, a cancel inside an early `on_next` stops the stream before its end."""
        self._stops(env, "inside on_next", demand=FAR, then=at_its_turn(ManualSubscriber.quit))

    @check("3.12", plain=2)
    def extra_spec312_a_cancel_of_one_subscriber_must_not_stop_another(self, env: TestEnvironment) -> None:
        """Of three subscribers the third and then the second cancel: those that are left get their elements."""
        publisher = self._publisher(env, 5)
        self._needs_two_subscribers_at_once(env)
        left = [self._subscribe(env, publisher, may_fail=True) for _ in range(3)]
        for elements in (1, 2, 3):
            for subscriber in left:
                if not subscriber.ends:
                    subscriber.request(1)
            for subscriber in left:
                env.happens(lambda one=subscriber, due=elements: len(one.elements) >= due or one.ends)  # type: ignore[misc]
                came = len(subscriber.elements) >= elements or subscriber.ends
                env.due(came, f"{subscriber.name} got no element", "3.8" if elements == 1 else "")
            left.pop().cancel()

    def _stops(self, env: TestEnvironment, when: str, *, demand: int = MAX_DEMAND, **how: Any) -> None:
        far = self._as_many(FAR)

        def on(subscriber: ManualSubscriber[T]) -> None:
            if subscriber.cancelled_after is None:
                subscriber.request(demand)
                subscriber.arrive(subscriber.turn)
                env.happens(lambda: subscriber.cancelled_after is not None or subscriber.ends)
                env.due(subscriber.cancelled_after is not None, f"{subscriber.turn} elements were due", "3.8")
            heard(subscriber)  # otherwise the publisher need not serve the next one

        def heard(subscriber: ManualSubscriber[T]) -> None:
            env.check(len(subscriber.elements) < far, f"cancelled {when}, it signalled all {far} elements")

        for subscriber in self._thrice(env, self._publisher(env, far), on, **how):
            heard(subscriber)

    # -- 3.9: an invalid request -------------------------------------------------------------------------------

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_inside_on_subscribe_must_be_answered(self, env: TestEnvironment) -> None:
        """`request(0)` inside `on_subscribe` is answered with `on_error(ValueError)`."""
        lingers = self._lingers(env)

        def refused(subscriber: ManualSubscriber[T]) -> None:
            subscriber.ask(0)
            lingers(subscriber)  # an answer on another thread waits until on_subscribe has returned (1.3)

        publisher = self._publisher(env, 3)
        self._thrice(env, publisher, partial(self._answered, env), may_fail=True, subscribed=refused)

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_inside_on_next_must_be_answered(self, env: TestEnvironment) -> None:
        """`request(-1)` and `request(0)` inside an early `on_next` are answered with one `on_error(ValueError)`."""

        def twice(subscriber: ManualSubscriber[T]) -> None:
            subscriber.ask(-1)
            subscriber.ask(0)

        self._refused_inside(env, twice)

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_must_be_answered_while_demand_is_left(self, env: TestEnvironment) -> None:
        """With five elements requested, `request(0)` inside an earlier `on_next` is answered."""
        self._refused_inside(env, lambda item: item.ask(0), 5)

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_must_be_answered_where_all_was_requested(self, env: TestEnvironment) -> None:
        """With MAX_DEMAND requested, `request(-1)` inside an early `on_next` is answered before the stream ends.

        A publisher that takes calls from a mailbox may hear it too late for that. Then all but one element are
        requested of another one: its answer comes after all of these, or it could have been in time here.
        """
        elements = self._as_many(FAR)

        def to_its_turn(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(MAX_DEMAND)
            env.happens(subscriber.has_ended)
            all_came = subscriber.completions and len(subscriber.elements) == elements
            if not (all_came and self._hears_late(env, elements, subscriber.turn)):
                self._answered(env, subscriber)

        self._thrice(env, self._publisher(env, elements), to_its_turn, may_fail=True, then=at_its_turn(_refused))

    def _hears_late(self, env: TestEnvironment, elements: int, turn: int) -> bool:
        """Whether the answer to an invalid request inside an early `on_next` comes after all requested elements."""
        publisher = self._publisher(env, elements)
        subscriber = self._subscribe(env, publisher, may_fail=True, turn=turn, then=at_its_turn(_refused))
        subscriber.request(elements - 1)
        self._answered(env, subscriber)
        return len(subscriber.elements) == elements - 1

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_from_another_thread_must_be_answered(self, env: TestEnvironment) -> None:
        """While an `on_next` runs, another thread calls `request(0)`: it is answered."""
        self._needs_concurrent_requests(env)
        self._refused_inside(env, lambda item: self._elsewhere(env, item, lambda same: same.ask(0)))

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_must_be_answered_after_elements_have_come(self, env: TestEnvironment) -> None:
        """After two elements, `request(-1)` from outside is answered."""

        def after_two(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(2)
            subscriber.next_elements(2)
            subscriber.request(-1)
            self._answered(env, subscriber)
            subscriber.request(1)

        self._thrice(env, self._publisher(env, 10), after_two, may_fail=True)

    @check("3.9", plain=THIRD)
    def extra_spec309_an_invalid_request_of_the_second_subscriber_must_be_answered(self, env: TestEnvironment) -> None:
        """Of two subscribers the second one calls `request(0)`: it gets the error, and the first one its elements."""
        publisher = self._publisher(env, 3)
        self._needs_two_subscribers_at_once(env)
        first = self._subscribe(env, publisher, may_fail=True)
        second = self._subscribe(env, publisher, may_fail=True)
        second.request(0)
        env.happens(second.has_ended)
        self._answered(env, second)
        first.request(1)
        env.happens(first.was_signalled, env.settings.default_no_signals_timeout)
        env.check(not first.errors, f"the first subscriber got on_error({shown(first.errors)}) for it")

    def _refused_inside(self, env: TestEnvironment, act: Act, demand: int = 0) -> None:
        """`act` runs inside an `on_next`, with so much requested, or by default as much as has come."""

        def to_its_turn(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(demand or subscriber.turn)
            self._answered(env, subscriber)

        publisher = self._publisher(env, self._as_many(FAR))
        self._thrice(env, publisher, to_its_turn, may_fail=True, then=at_its_turn(act))

    def _answered(self, env: TestEnvironment, subscriber: ManualSubscriber[T]) -> None:
        subscriber.expect_error(ValueError, "3.9")

    # -- 3.13: references --------------------------------------------------------------------------------------

    @check("3.13", plain=THIRD)
    def extra_spec313_a_subscriber_that_cancels_before_it_requests_must_be_dropped(self, env: TestEnvironment) -> None:
        """After a cancel before any request the subscriber can be collected while the publisher is kept."""
        self._dropped(env, self._publisher(env, 3), lambda subscriber: subscriber.cancel())

    @check("3.13", plain=THIRD)
    def extra_spec313_a_subscriber_that_cancels_inside_on_subscribe_must_be_dropped(self, env: TestEnvironment) -> None:
        """After a cancel inside `on_subscribe` the subscriber can be collected while the publisher is kept."""
        self._dropped(env, self._publisher(env, 3), lambda subscriber: None, subscribed=lambda item: item.quit())

    @check("3.13", plain=THIRD)
    def extra_spec313_a_subscriber_that_cancels_inside_on_next_must_be_dropped(self, env: TestEnvironment) -> None:
        """After a cancel inside an `on_next` the subscriber can be collected while the publisher is kept.

        That of the second subscriber comes from another thread, while its `on_next` runs.
        """

        def leave(subscriber: ManualSubscriber[T]) -> None:
            if subscriber.turn == THIRD - 1:
                self._elsewhere(env, subscriber, lambda item: item.quit())
            else:
                subscriber.quit()

        def to_its_turn(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(10)
            subscriber.next_elements(subscriber.turn)

        self._dropped(env, self._publisher(env, 20), to_its_turn, then=at_its_turn(leave))

    @check("1.6", plain=3)
    def extra_spec106_the_subscribers_of_ended_streams_must_be_dropped(self, env: TestEnvironment) -> None:
        """After `on_complete` each of three subscribers can be collected while the publisher is kept."""

        def to_its_end(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(4)
            subscriber.next_elements(3)
            subscriber.expect_completion()

        self._dropped(env, self._publisher(env, 3, completes=True), to_its_end)

    @check("1.6")
    def extra_spec106_the_subscribers_of_failed_streams_must_be_dropped(self, env: TestEnvironment) -> None:
        """After `on_error` each of three subscribers can be collected while the publisher is kept."""

        def to_its_end(subscriber: ManualSubscriber[T]) -> None:
            if not subscriber.ends:
                subscriber.request(5)
            subscriber.expect_error()

        self._dropped(env, self._publisher_failing_after(env, 2), to_its_end, may_fail=True)

    @check("1.6", plain=3)
    def extra_spec106_a_subscriber_whose_invalid_request_was_answered_must_be_dropped(
        self, env: TestEnvironment
    ) -> None:
        """After the `on_error` that answers `request(0)` each of three subscribers can be collected."""

        def to_its_end(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(0)
            self._answered(env, subscriber)

        self._dropped(env, self._publisher(env, 3), to_its_end, may_fail=True)

    def _dropped(self, env: TestEnvironment, publisher: Publisher[T], act: Act, **how: Any) -> None:
        """Each subscriber can be collected: then no signal can come to it, and the check needs no silence."""
        for number, reference in enumerate(self._left(env, publisher, act, **how), 1):
            env.collected(reference, f"{shown(publisher)} still refers to subscriber {number}, which has left")

    def _left(self, env: TestEnvironment, publisher: Publisher[T], act: Act, **how: Any) -> list[weakref.ref[Any]]:
        return [weakref.ref(subscriber) for subscriber in self._serve(env, publisher, act, **how)]

    # -- the second and the third subscriber -------------------------------------------------------------------

    @check("1.7", plain=3)
    def extra_spec107_each_of_three_subscribers_must_get_its_elements_and_one_end(self, env: TestEnvironment) -> None:
        """Three subscribers, one after the other, each get three elements, `on_complete`, and nothing after it."""

        def to_its_end(subscriber: ManualSubscriber[T]) -> None:
            subscriber.request(2)
            subscriber.request(2)
            subscriber.next_elements(3)
            subscriber.expect_completion()
            subscriber.request(1)

        self._thrice(env, self._publisher(env, 3, completes=True), to_its_end)

    @check("1.4", plain=3)
    def extra_spec104_each_of_three_subscribers_must_be_notified_of_a_failure(self, env: TestEnvironment) -> None:
        """Three subscribers of a stream that fails after two elements each get one `on_error`, and nothing after it."""

        def to_its_end(subscriber: ManualSubscriber[T]) -> None:
            if not subscriber.ends:
                subscriber.request(5)
            subscriber.expect_error()
            subscriber.request(1)

        self._thrice(env, self._publisher_failing_after(env, 2), to_its_end, may_fail=True)

    def _thrice(self, env: TestEnvironment, publisher: Publisher[T], act: Act, **how: Any) -> list[ManualSubscriber[T]]:
        """As `_serve`, and then wait until no signal comes to any of them."""
        return self._until_silent(env, self._serve(env, publisher, act, **how))

    def _serve(self, env: TestEnvironment, publisher: Publisher[T], act: Act, **how: Any) -> list[ManualSubscriber[T]]:
        """Lead three subscribers through `act`, one after the other; one, if the publisher does not start anew."""
        served: list[ManualSubscriber[T]] = []
        for turn in range(THIRD, 0, -1) if self._starts_anew() else [THIRD]:
            subscriber = self._subscribe(env, publisher, turn=turn, **how)
            act(subscriber)
            served.append(subscriber)
        return served

    def _until_silent(self, env: TestEnvironment, served: list[ManualSubscriber[T]]) -> list[ManualSubscriber[T]]:
        while env.silence(lambda: sum(subscriber.count for subscriber in served)):
            env.verify()
        return served

    # -- another thread ----------------------------------------------------------------------------------------

    def _elsewhere(self, env: TestEnvironment, subscriber: ManualSubscriber[T], act: Act) -> None:
        """Run `act` on another thread, inside of a signal, and wait for it; it must not wait for the signal (3.5)."""
        done = threading.Event()

        def run() -> None:
            act(subscriber)
            done.set()

        started(run, "tck-elsewhere")
        if not done.wait(env.settings.call_timeout):
            env.fault("a call from another thread did not return while on_next was running", "3.5")


def _refused(subscriber: ManualSubscriber[Any]) -> None:
    """An invalid request, from inside a signal."""
    subscriber.ask(-1)
