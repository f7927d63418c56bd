"""`Flow`: the fluent publisher. What each operator does is written where it is made; here it gets its name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

from reactive_runtime import sources
from reactive_runtime._core.arguments import at_least
from reactive_runtime._core.explain import drawing
from reactive_runtime._core.origin import Origin, Part, lengthened, make_flows_of, parts_of
from reactive_runtime._core.place import assembled
from reactive_runtime._core.step import Step
from reactive_runtime._core.subscription import PulledSubscription
from reactive_runtime.operators import (
    boundaries,
    bridging,
    calling,
    combining,
    filtering,
    flattening,
    folding,
    looking,
    pacing,
    pushing,
    recovering,
    sharing,
    sinks,
    splitting,
    timing,
    transforming,
)
from reactive_runtime.operators.sinks import FlowHandle
from reactive_runtime.spec import Subscriber

__all__ = ["ConnectableFlow", "Flow"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Flow(Generic[T_co]):
    """A `Publisher` with operators: lazy, immutable, reusable; nothing runs until it is subscribed to.

    Each subscriber gets a run of its own (1.11). The signals it gets are serial (1.3), never more than it asked
    for (1.1), whichever threads they come on; `request` and `cancel` may be called from any thread, at any
    time, any number of times.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(10).filter(lambda n: n % 2).map(lambda n: n * n).take(3))
    [1, 9, 25]
    """

    __slots__ = ("_origin", "_steps")

    def __init__(self, origin: Origin[Any], steps: Sequence[Step[Any, Any]] = ()) -> None:
        """For the sources and operators; a user's flow begins with one of the sources below."""
        self._origin = origin
        self._steps = steps

    # sources
    just = sources.just
    empty = sources.empty
    never = sources.never
    error = sources.error
    range = sources.range
    from_iterable = sources.from_iterable
    from_supplier = sources.from_supplier
    from_callable = sources.from_callable
    from_future = pushing.from_future
    from_async = pushing.from_async
    from_publisher = sources.from_publisher
    from_file = sources.from_file
    generate = sources.generate
    create = pushing.create
    defer = sources.defer
    using = sources.using
    interval = timing.interval
    timer = timing.timer
    concat = combining.concat
    merge = combining.merge
    merge_comparing = combining.merge_comparing
    zip = combining.zip
    combine_latest = combining.combine_latest
    race = combining.race

    from_dataframe = bridging.from_dataframe
    from_stream = bridging.from_stream

    # one to one, and to several
    map = transforming.map
    starmap = transforming.starmap
    map_not_none = transforming.map_not_none
    handle = transforming.handle
    flat_map_iterable = transforming.flat_map_iterable
    flatten = transforming.flatten
    enumerate = transforming.enumerate
    pairwise = transforming.pairwise
    scan = transforming.scan
    batch = buffer = transforming.batch
    end_with = transforming.end_with
    materialize = transforming.materialize
    dematerialize = transforming.dematerialize
    transform = transforming.transform

    # which elements pass
    filter = filtering.filter
    distinct = filtering.distinct
    distinct_until_changed = filtering.distinct_until_changed
    take = filtering.take
    take_while = filtering.take_while
    skip = filtering.skip
    skip_while = filtering.skip_while
    first = filtering.first
    last = filtering.last
    element_at = filtering.element_at
    default_if_empty = filtering.default_if_empty
    ignore_elements = filtering.ignore_elements

    # many to one
    reduce = folding.reduce
    collect = folding.collect
    to_list = folding.to_list
    to_dict = folding.to_dict
    count = folding.count
    sum = folding.sum
    min = folding.min
    max = folding.max
    all = folding.all
    any = folding.any
    contains = folding.contains

    # several sources
    concat_with = combining.concat_with
    start_with = combining.start_with
    merge_with = combining.merge_with
    zip_with = combining.zip_with
    with_latest_from = combining.with_latest_from
    switch_if_empty = combining.switch_if_empty
    take_until = combining.take_until
    skip_until = combining.skip_until

    # flows of flows, tasks, coroutines
    flat_map = flattening.flat_map
    flat_map_sequential = flattening.flat_map_sequential
    concat_map = flattening.concat_map
    switch_map = flattening.switch_map
    map_parallel = calling.map_parallel
    expand = flattening.expand
    group_by = splitting.group_by
    window = splitting.window

    # time
    batch_by = timing.batch_by
    debounce = timing.debounce
    delay = timing.delay
    rate_limit = timing.rate_limit
    sample = timing.sample
    throttle = timing.throttle
    timeout = timing.timeout

    # boundaries and flow control
    publish_on = boundaries.publish_on
    subscribe_on = boundaries.subscribe_on
    parallel = pacing.parallel
    limit_rate = pacing.limit_rate
    on_overflow_buffer = pacing.on_overflow_buffer
    on_overflow_drop = pacing.on_overflow_drop
    on_overflow_latest = pacing.on_overflow_latest
    pausable = pacing.pausable
    kill_switch = pacing.kill_switch
    serialize = pacing.serialize
    share = sharing.share
    publish = sharing.publish
    replay = sharing.replay
    cache = sharing.cache

    # errors, and once more
    on_error_resume = recovering.on_error_resume
    on_error_return = recovering.on_error_return
    map_error = recovering.map_error
    retry = recovering.retry
    retry_when = recovering.retry_when
    retry_backoff = recovering.retry_backoff
    repeat = recovering.repeat
    repeat_when = recovering.repeat_when
    finalize = looking.finalize

    # looking in
    tap = looking.tap
    do_on_subscribe = looking.do_on_subscribe
    do_on_request = looking.do_on_request
    do_on_next = looking.do_on_next
    do_on_error = looking.do_on_error
    do_on_complete = looking.do_on_complete
    do_on_cancel = looking.do_on_cancel
    do_on_discard = looking.do_on_discard
    do_finally = looking.do_finally
    log = looking.log
    named = looking.named
    checkpoint = looking.checkpoint
    metrics = looking.metrics
    progress = looking.progress

    # sinks
    subscribe = sinks.subscribe
    to_future = sinks.to_future
    to_queue = sinks.to_queue
    block = sinks.block
    run = sinks.run
    for_each = sinks.for_each
    iterate = sinks.iterate
    iterate_async = sinks.iterate_async
    to_spark = bridging.to_spark

    def __iter__(self) -> Iterator[T_co]:
        return sinks.iterate(self)

    __iter__.__doc__ = sinks.iterate.__doc__

    def __aiter__(self) -> AsyncGenerator[T_co, None]:
        return sinks.iterate_async(self)

    __aiter__.__doc__ = sinks.iterate_async.__doc__

    def explain(self) -> str:
        """The pipeline as the specification draws it: `|` is a boundary, below it the resource of each part.

        `caller` is whichever thread requests. `¦` stands where an operator gives what comes before it a drain of its
        own, since it may keep its thread, and the operator hears from elsewhere: a clock, a switch, another publisher.

        >>> from reactive_runtime import Flow
        >>> print(Flow.range(9).map(str).take(2).explain())
        range(9) map(str) take(2) consume
        ------------- caller ------------
        """
        return drawing(self._parts())

    def __str__(self) -> str:
        return " | ".join(part.text for part in self._parts())

    def __repr__(self) -> str:
        return f"<Flow {self}>"

    # for the sources and operators of the package
    def _then(self, step: Step[Any, R]) -> Flow[R]:
        step.place = assembled()
        return Flow(*lengthened(self, step))

    def _none(self) -> Flow[T_co]:
        return sources.empty()

    def _on(self, executor: Executor) -> Flow[T_co]:
        return Flow(self._origin.on(executor), self._steps)

    def _parts(self) -> list[Part]:
        return parts_of(self)

    def _run(self, subscriber: Subscriber[Any]) -> PulledSubscription:
        plan = self._origin.plan()
        subscription = PulledSubscription(subscriber, plan.feed(None), (*plan.steps, *self._steps), plan.executor)
        subscription.start()
        return subscription


class ConnectableFlow(Flow[T]):
    """A flow whose subscribers share one subscription to its source; see `Flow.publish` and `Flow.replay`."""

    __slots__ = ("_line",)

    def __init__(self, line: sharing.Line) -> None:
        """For `publish` and `replay`."""
        super().__init__(line.origin())
        self._line = line

    def connect(self) -> FlowHandle:
        """Subscribe to the source, unless there is a connection that goes on; the handle's `cancel` cancels the source.

        Those who are still subscribed then get nothing more, and no end. After the end, or a cancel, it begins anew.
        """
        return FlowHandle(Connection(self._line.connect()))

    def ref_count(self, n: int = 1, /) -> Flow[T]:
        """A flow that connects when it has `n` subscribers (1 or more), and cancels the source when none is left."""
        return self._line.ref_count(at_least("ref_count", "n", 1, n))


class Connection:
    """The hold on a source that is shared."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def request(self, n: int, /) -> None:
        """Nothing: subscribers ask."""

    def cancel(self) -> None:
        """Cancel the source."""
        self._end()


make_flows_of(Flow, ConnectableFlow)
