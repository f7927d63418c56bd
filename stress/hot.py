"""Hot sources and processors: fed while their subscribers ask, cancel, come and go."""

from collections.abc import Callable
from typing import Any

from reactive_runtime import Emitter, Flow, Publisher
from reactive_runtime.hot import (
    BehaviorProcessor,
    EmitResult,
    PublishProcessor,
    ReplayProcessor,
    SubmissionPublisher,
    UnicastProcessor,
)
from reactive_runtime.processors import FlowProcessor
from reactive_runtime.stress import Context, scenario


def emitting(hot: Any, end: Callable[[], object]) -> Callable[[], None]:
    """A feeder: numbers for as long as there is room, then the end."""

    def feed() -> None:
        for n in range(1, 200):
            if hot.emit(n) in (EmitResult.TERMINATED, EmitResult.CANCELLED):
                break
        end()

    return feed


def submitting(publisher: SubmissionPublisher[int], first: int, step: int) -> Callable[[], None]:
    """A feeder: numbers, which are dropped where there is no room; then the end."""

    def feed() -> None:
        try:
            for n in range(first, 200, step):
                publisher.offer(n, 0.0)
        except RuntimeError:  # another feeder has closed it
            return
        publisher.close()

    return feed


@scenario(elements=None, live=6, tags=["smoke"], settles=False)
def submissions(context: Context) -> Publisher[int]:
    """`SubmissionPublisher`, one thread submits."""
    publisher: SubmissionPublisher[int] = SubmissionPublisher(context.pool(4, "hot"), max_buffer=8)
    context.feed(submitting(publisher, 0, 1))
    return publisher


@scenario(elements=None, live=6, ascending=False, settles=False)
def submissions_from_three_threads(context: Context) -> Publisher[int]:
    """`SubmissionPublisher`, three threads submit, and race to close it."""
    publisher: SubmissionPublisher[int] = SubmissionPublisher(context.pool(4, "hot"), max_buffer=8)
    for first in range(3):
        context.feed(submitting(publisher, first, 3))
    return publisher


@scenario(elements=None, live=6, workload="churn", settles=False)
def submissions_to_subscribers_that_come_and_go(context: Context) -> Publisher[int]:
    """`SubmissionPublisher`, while actors subscribe."""
    publisher: SubmissionPublisher[int] = SubmissionPublisher(context.pool(4, "hot"), max_buffer=8)
    context.feed(submitting(publisher, 0, 3))
    return publisher


@scenario(elements=None, live=6, settles=False)
def published(context: Context) -> Publisher[int]:
    """`PublishProcessor`, emitted into."""
    hot: PublishProcessor[int] = PublishProcessor(capacity=8)
    context.feed(emitting(hot, hot.on_complete))
    return hot


@scenario(elements=None, live=6, settles=False)
def replayed(context: Context) -> Publisher[int]:
    """`ReplayProcessor`: late ones begin with the last five."""
    hot: ReplayProcessor[int] = ReplayProcessor(5, capacity=8)
    context.feed(emitting(hot, hot.on_complete))
    return hot


@scenario(elements=None, live=6, settles=False)
def a_value_that_changes(context: Context) -> Publisher[int]:
    """`BehaviorProcessor`, which fails in the end."""
    hot: BehaviorProcessor[int] = BehaviorProcessor(0, capacity=8)
    context.feed(emitting(hot, lambda: hot.on_error(OSError("the end"))))
    return hot


@scenario(elements=None, live=1)
def for_one_subscriber(context: Context) -> Publisher[int]:
    """`UnicastProcessor`, emitted into."""
    hot: UnicastProcessor[int] = UnicastProcessor(capacity=8)
    context.feed(emitting(hot, hot.on_complete))
    return hot


@scenario(elements=200, live=1)
def a_processor_of_operators(context: Context) -> Publisher[int]:
    """`FlowProcessor`, between a source and a subscriber on threads of their own."""
    processor: FlowProcessor[int, int] = FlowProcessor(
        lambda flow: flow.map(abs).publish_on(context.pool(2, "B"), prefetch=8)
    )
    Flow.range(200).subscribe_on(context.pool(2, "A")).subscribe(processor)
    return processor


@scenario(elements=None, live=6, settles=False)
def shared(context: Context) -> Publisher[int]:
    """`share`: one subscription for all."""
    return Flow.range(500).subscribe_on(context.pool(2, "A")).share(capacity=8)


@scenario(elements=None, live=6, settles=False)
def replayed_to_all(context: Context) -> Publisher[int]:
    """`replay`, for as long as there is a subscriber."""
    return Flow.range(200).subscribe_on(context.pool(2, "A")).replay(8, capacity=8).ref_count()


@scenario(elements=100, live=6, settles=False)
def cached(context: Context) -> Publisher[int]:
    """`cache`: every subscriber gets everything, and the source runs once."""
    return Flow.range(100).subscribe_on(context.pool(2, "A")).cache()


@scenario(elements=100, live=4)
def pushed_by_a_callback(context: Context) -> Publisher[int]:
    """`create`: a task pushes, and completes."""

    def begin(emitter: Emitter[int]) -> None:
        def push() -> None:
            for n in range(100):
                emitter.emit(n)
            emitter.complete()

        context.pool(2, "A").submit(push)

    return Flow.create(begin, overflow="error", capacity=200)
