"""Generated from the operators by `WRITE_DOCS=1 pytest tests/core/test_face.py`: do not edit.

Type checkers see here what a `Pipeline` has. At run time a pipeline looks up an operator of `Flow` by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Executor
from typing import Any, Generic, Literal, TypeVar, TypeVarTuple, overload

from _typeshed import SupportsRichComparison

from reactive_runtime._core.drains.combinator import Clock
from reactive_runtime._core.runtime.arguments import When
from reactive_runtime._flow import Flow
from reactive_runtime._operators.aggregating import Dividable, Summable
from reactive_runtime._operators.backpressure import KillSwitch, Valve
from reactive_runtime._operators.concurrent.signal_context import ContextFlow, InContext
from reactive_runtime._operators.keeping.sorting import Folder
from reactive_runtime._operators.monitoring import Metrics
from reactive_runtime._operators.notifications import Notification
from reactive_runtime._operators.resilience.bulkheads import Bulkhead
from reactive_runtime._operators.resilience.circuit import CircuitBreaker
from reactive_runtime._operators.resilience.dead_letters import DeadLetter, SupportsEmit
from reactive_runtime._operators.side_effects import Listener, Way
from reactive_runtime._spec import Publisher
from reactive_runtime.pipeline import Pipeline

__all__ = ["PipelineOperators"]
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
K = TypeVar("K", bound=Hashable)
N_co = TypeVar("N_co", covariant=True)
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
V = TypeVar("V")
In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)

class PipelineOperators(Generic[In_contra, Out_co]):
    """The operators of `Flow`, each of which makes a longer pipeline."""

    def all(self, predicate: Callable[[Out_co], object] = ...) -> Pipeline[In_contra, bool]:
        """Whether `predicate(element)` is true for every element."""

    def any(self, predicate: Callable[[Out_co], object] = ...) -> Pipeline[In_contra, bool]:
        """Whether `predicate(element)` is true for some element."""

    def average(self: PipelineOperators[In_contra, Dividable[N_co]]) -> Pipeline[In_contra, N_co]:
        """The mean of the elements: their sum, by `+`, divided by their number, by `/`."""

    def batch(self, n: int, *, skip: int | None = ...) -> Pipeline[In_contra, list[Out_co]]:
        """Lists of `n` elements; a list begins with every `skip`-th element."""

    def buffer(self, n: int, *, skip: int | None = ...) -> Pipeline[In_contra, list[Out_co]]: ...
    def buffer_time(
        self, seconds: float, *, every: float | None = ..., clock: Clock | None = ..., capacity: int = ...
    ) -> Pipeline[In_contra, list[Out_co]]:
        """Lists of elements by time: a list takes elements for `seconds`; the next one begins after `every` seconds."""

    def buffer_timeout(self, n: int, seconds: float, *, clock: Clock | None = ...) -> Pipeline[In_contra, list[Out_co]]:
        """Lists of `n` elements, or of those there are when `seconds` have passed since the first of them."""

    def buffer_until(
        self, predicate: Callable[[Out_co], object], *, cut_before: bool = ..., capacity: int = ...
    ) -> Pipeline[In_contra, list[Out_co]]:
        """Lists that end with an element for which `predicate(element)` is true."""

    def buffer_when(self, boundary: Publisher[object], *, capacity: int = ...) -> Pipeline[In_contra, list[Out_co]]:
        """Lists of the elements that come between two elements of `boundary`; no list if none came."""

    def bulkhead(self, bulkhead: Bulkhead) -> Pipeline[In_contra, Out_co]:
        """The source; a subscription waits until `bulkhead` has room for it."""

    def cache(self) -> Pipeline[In_contra, Out_co]:
        """The source is run once, for the first subscriber, and all subscribers get all of its elements."""

    def checkpoint(self, description: str = ...) -> Pipeline[In_contra, Out_co]:
        """An error that comes from upstream gets a note that says where this line is."""

    def circuit_breaker(self, breaker: CircuitBreaker) -> Pipeline[In_contra, Out_co]:
        """The source; while `breaker` is open, a CircuitOpenError at once, without a subscription to the source."""

    def collect(self, supplier: Callable[[], S], accumulate: Callable[[S, Out_co], object]) -> Pipeline[In_contra, S]:
        """All elements, put into one container."""

    def concat_map(self, fn: Callable[[Out_co], Publisher[R]], *, delay_error: bool = ...) -> Pipeline[In_contra, R]:
        """Each element becomes the publisher `fn(element)`; the elements of one after the other."""

    def concat_with(self, *others: Publisher[R]) -> Pipeline[In_contra, Out_co | R]:
        """The elements of the source, then those of each of `others`, as `concat` does."""

    def conflate(self, seed: Callable[[Out_co], S], fn: Callable[[S, Out_co], S]) -> Pipeline[In_contra, S]:
        """A summary of the elements that come between two demands: it drops no element, and holds no source back."""

    def contains(self: PipelineOperators[In_contra, T], element: T) -> Pipeline[In_contra, bool]:
        """Whether an element equals `element`."""

    def count(self) -> Pipeline[In_contra, int]:
        """How many elements there were."""

    def deadline(self, seconds: float, *, clock: Clock | None = ...) -> Pipeline[In_contra, Out_co]:
        """The source; if it has not ended after `seconds`, the flow fails with TimeoutError."""

    def debounce(self, seconds: float, *, clock: Clock | None = ...) -> Pipeline[In_contra, Out_co]:
        """An element when `seconds` have passed without another one; those that are followed sooner are dropped."""

    def default_if_empty(self, default: R) -> Pipeline[In_contra, Out_co | R]:
        """The source, or `default` where it completes without an element."""

    def delay(self, seconds: float, *, clock: Clock | None = ...) -> Pipeline[In_contra, Out_co]:
        """Each element `seconds` later, and so the end; an error comes at once."""

    def delay_subscription(
        self, delay: float | Publisher[object], *, clock: Clock | None = ...
    ) -> Pipeline[In_contra, Out_co]:
        """The source, which is subscribed to when so many seconds have passed, or another publisher has signalled."""

    def dematerialize(self: PipelineOperators[In_contra, Notification[T]]) -> Pipeline[In_contra, T]:
        """Each `Notification` as the signal that it stands for: the opposite of `materialize`."""

    def distinct(self, *, key: Callable[[Out_co], Hashable] | None = ...) -> Pipeline[In_contra, Out_co]:
        """The elements whose key has not been there before."""

    def distinct_until_changed(self, *, key: Callable[[Out_co], object] | None = ...) -> Pipeline[In_contra, Out_co]:
        """The elements whose key is not that of the element before."""

    def do_finally(self, fn: Callable[[Way], object]) -> Pipeline[In_contra, Out_co]:
        """`fn(way)` is called once, when the subscription is over."""

    def do_on_cancel(self, fn: Callable[[], object]) -> Pipeline[In_contra, Out_co]:
        """`fn()` is called when the flow is cancelled before the source has ended."""

    def do_on_complete(self, fn: Callable[[], object]) -> Pipeline[In_contra, Out_co]:
        """`fn()` is called when the source has completed, before the end goes on."""

    def do_on_discard(self, fn: Callable[[Any], object]) -> Pipeline[In_contra, Out_co]:
        """`fn(element)` is called for each element that was accepted here or upstream and will not be delivered."""

    def do_on_error(self, fn: Callable[[Exception], object]) -> Pipeline[In_contra, Out_co]:
        """`fn(error)` is called when the source has failed, before the error goes on."""

    def do_on_next(self, fn: Callable[[Out_co], object]) -> Pipeline[In_contra, Out_co]:
        """`fn(element)` is called before each element goes on."""

    def do_on_request(self, fn: Callable[[int], object]) -> Pipeline[In_contra, Out_co]:
        """`fn(n)` is called for each demand that is passed upstream here, before it is."""

    def do_on_subscribe(self, fn: Callable[[], object]) -> Pipeline[In_contra, Out_co]:
        """`fn()` is called when a subscription begins."""

    def elapsed(self, *, clock: Clock | None = ...) -> Pipeline[In_contra, tuple[float, Out_co]]:
        """Each element with the time since the one before: pairs `(seconds, element)`."""

    @overload
    def element_at(self, index: int) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def element_at(self, index: int, default: R) -> Pipeline[In_contra, Out_co | R]:
        """The element with number `index`, counted from 0."""

    def end_with(self, *elements: R) -> Pipeline[In_contra, Out_co | R]:
        """The source, and then `elements`."""

    def enumerate(self, start: int = ...) -> Pipeline[In_contra, tuple[int, Out_co]]:
        """Each element with its number, counted from `start`."""

    def expand(
        self, fn: Callable[[Out_co], Publisher[Out_co]], *, concurrency: int = ...
    ) -> Pipeline[In_contra, Out_co]:
        """Each element, then those of the publisher `fn(element)`, each of which is expanded in turn: a tree."""

    def filter(self, predicate: Callable[[Out_co], object]) -> Pipeline[In_contra, Out_co]:
        """Only the elements for which `predicate(element)` is true."""

    def finalize(self, fn: Callable[[], object]) -> Pipeline[In_contra, Out_co]:
        """`fn()` is called exactly once for each subscription, whichever way it ends."""

    @overload
    def first(self) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def first(self, default: R) -> Pipeline[In_contra, Out_co | R]:
        """The first element."""

    @overload
    def flat_map(
        self,
        fn: Callable[[Out_co], Coroutine[Any, Any, R]],
        *,
        concurrency: int = ...,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Pipeline[In_contra, R]: ...
    @overload
    def flat_map(
        self,
        fn: Callable[[Out_co], Publisher[R]],
        *,
        concurrency: int = ...,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Pipeline[In_contra, R]:
        """Each element becomes the publisher `fn(element)`; the elements of up to `concurrency` of them, as they come."""

    def flat_map_iterable(self, fn: Callable[[Out_co], Iterable[R]]) -> Pipeline[In_contra, R]:
        """Each element becomes the elements of `fn(element)`, in order."""

    def flat_map_sequential(
        self,
        fn: Callable[[Out_co], Publisher[R]],
        *,
        concurrency: int = ...,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Pipeline[In_contra, R]:
        """Each element becomes the publisher `fn(element)`; up to `concurrency` are under way, their elements in order."""

    def flatten(self: PipelineOperators[In_contra, Iterable[R]]) -> Pipeline[In_contra, R]:
        """The elements of each element, which is an iterable."""

    def group_by(
        self, key: Callable[[Out_co], K], *, groups: int = ..., prefetch: int = ...
    ) -> Pipeline[In_contra, tuple[K, Flow[Out_co]]]:
        """A pair `(key, flow)` for each new `key(element)`; the flow, a *group*, has the elements with that key."""

    def handle(self, fn: Callable[[Out_co, Callable[[R], None]], object]) -> Pipeline[In_contra, R]:
        """Each element becomes any number of elements: those that `fn(element, emit)` gives to `emit`."""

    def ignore_elements(self) -> Pipeline[In_contra, Out_co]:
        """No element, only the end."""

    def kill_switch(self, switch: KillSwitch) -> Pipeline[In_contra, Out_co]:
        """The source, until `switch` is thrown: then it is cancelled, and the flow completes."""

    @overload
    def last(self) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def last(self, default: R) -> Pipeline[In_contra, Out_co | R]:
        """The last element."""

    def limit_rate(self, n: int) -> Pipeline[In_contra, Out_co]:
        """The source is asked for `n` elements at a time: first, and again when three quarters are through."""

    def log(self, name: str = ..., *, level: int = ...) -> Pipeline[In_contra, Out_co]:
        """Each signal as a line of a logger: subscription, elements, end, and cancellation."""

    def map(self, fn: Callable[[Out_co], R]) -> Pipeline[In_contra, R]:
        """Each element becomes `fn(element)`."""

    def map_by_key(
        self,
        fn: Callable[[Out_co], R],
        key: Callable[[Out_co], Hashable],
        executor: Executor,
        *,
        concurrency: int = ...,
        prefetch: int = ...,
    ) -> Pipeline[In_contra, R]:
        """`fn(element)`, called on `executor`: for one key one after the other, for several keys in parallel."""

    def map_error(self, fn: Callable[[Exception], Exception]) -> Pipeline[In_contra, Out_co]:
        """The source; where it fails, `fn(error)` in place of the error, which becomes its cause."""

    def map_not_none(self, fn: Callable[[Out_co], R | None]) -> Pipeline[In_contra, R]:
        """Each element becomes `fn(element)`, and is dropped where that is None."""

    @overload
    def map_parallel(
        self,
        fn: Callable[[Out_co], Coroutine[Any, Any, R]],
        executor: None = ...,
        *,
        concurrency: int | Literal["auto"] = ...,
        ordered: bool = ...,
        chunk: Literal[1] = ...,
    ) -> Pipeline[In_contra, R]: ...
    @overload
    def map_parallel(
        self,
        fn: Callable[[Out_co], R],
        executor: Executor,
        *,
        concurrency: int | Literal["auto"] = ...,
        ordered: bool = ...,
        chunk: int = ...,
    ) -> Pipeline[In_contra, R]:
        """Each element becomes `fn(element)`, called on `executor`: threads, processes, interpreters."""

    def materialize(self) -> Pipeline[In_contra, Notification[Out_co]]:
        """Each signal as a `Notification`, the end included."""

    @overload
    def max(
        self: PipelineOperators[In_contra, SupportsRichComparison], *, key: None = ...
    ) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def max(self, *, key: Callable[[Out_co], SupportsRichComparison]) -> Pipeline[In_contra, Out_co]:
        """The largest element."""

    def merge_with(
        self, *others: Publisher[R], prefetch: int = ..., delay_error: bool = ...
    ) -> Pipeline[In_contra, Out_co | R]:
        """The elements of the source and of `others`, each as soon as it is there, as `merge` does."""

    def metrics(self, counts: Metrics) -> Pipeline[In_contra, Out_co]:
        """Counts the signals into `counts`."""

    @overload
    def min(
        self: PipelineOperators[In_contra, SupportsRichComparison], *, key: None = ...
    ) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def min(self, *, key: Callable[[Out_co], SupportsRichComparison]) -> Pipeline[In_contra, Out_co]:
        """The smallest element."""

    def named(self, name: str) -> Pipeline[In_contra, Out_co]:
        """The same flow, with a name that `explain` shows."""

    def on_error_complete(self, *, when: When = ...) -> Pipeline[In_contra, Out_co]:
        """The source; if it fails, the flow completes instead."""

    def on_error_continue(
        self,
        part: Callable[[Flow[Out_co]], Publisher[R]],
        to: Callable[[DeadLetter], object] | SupportsEmit[DeadLetter],
        *,
        when: When = ...,
        concurrency: int = ...,
        prefetch: int = ...,
    ) -> Pipeline[In_contra, R]:
        """The results of `part`, run for each element alone; an element whose part fails becomes a dead letter."""

    def on_error_resume(
        self, fn: Callable[[Exception], Publisher[R]], *, when: When = ...
    ) -> Pipeline[In_contra, Out_co | R]:
        """The source; where it fails, then the publisher `fn(error)`, instead of the error."""

    def on_error_return(self, fn: Callable[[Exception], R], *, when: When = ...) -> Pipeline[In_contra, Out_co | R]:
        """The source; where it fails, then the element `fn(error)`, and the end, instead of the error."""

    def on_overflow_buffer(
        self, n: int, *, drop: Literal["oldest", "newest", "error"] = ...
    ) -> Pipeline[In_contra, Out_co]:
        """Elements that come without demand are kept, up to `n` of them."""

    def on_overflow_drop(self) -> Pipeline[In_contra, Out_co]:
        """Elements that come without demand are dropped, to the hook."""

    def on_overflow_latest(self) -> Pipeline[In_contra, Out_co]:
        """An element that comes without demand takes the place of the one before: only the latest is kept."""

    def pairwise(self) -> Pipeline[In_contra, tuple[Out_co, Out_co]]:
        """Each element with the one before it."""

    def pausable(self, valve: Valve) -> Pipeline[In_contra, Out_co]:
        """Demand passes while `valve` is open; while it is paused, nothing is requested, and the source is held back."""

    def progress(self, report: Callable[[int], object], *, every: int = ...) -> Pipeline[In_contra, Out_co]:
        """`report(n)` is called with the number of elements so far."""

    def publish(self, *, capacity: int = ...) -> Pipeline[In_contra, Out_co]:
        """A flow whose subscribers share one subscription to the source, which `connect()` makes."""

    def publish_on(self, executor: Executor, *, prefetch: int = ...) -> Pipeline[In_contra, Out_co]:
        """The operators after this run on `executor`: an asynchronous boundary."""

    def rate_limit(self, n: int, *, clock: Clock | None = ..., per: float = ...) -> Pipeline[In_contra, Out_co]:
        """At most `n` elements in any stretch of `per` seconds; nothing is dropped."""

    @overload
    def reduce(self: PipelineOperators[In_contra, T], fn: Callable[[T, T], T]) -> Pipeline[In_contra, T]: ...
    @overload
    def reduce(self, fn: Callable[[S, Out_co], S], initial: S) -> Pipeline[In_contra, S]:
        """All elements, folded into one by `fn(so_far, element)`."""

    def repeat(self, n: int | None = ...) -> Pipeline[In_contra, Out_co]:
        """The source `n` times, one after the other."""

    def repeat_when(self, fn: Callable[[int], Publisher[object]]) -> Pipeline[In_contra, Out_co]:
        """The source; where it completes, once more as soon as the publisher `fn(times)` has an element."""

    def replay(self, n: int, *, capacity: int = ...) -> Pipeline[In_contra, Out_co]:
        """As `publish`, and a subscriber gets the last `n` elements first, also after the end."""

    def retry(self, n: int | None = ..., *, when: When | None = ...) -> Pipeline[In_contra, Out_co]:
        """The source; where it fails, the source once more, up to `n` times."""

    def retry_backoff(
        self,
        n: int,
        *,
        clock: Clock | None = ...,
        first: float = ...,
        most: float = ...,
        jitter: float = ...,
        when: When | None = ...,
    ) -> Pipeline[In_contra, Out_co]:
        """`retry`, after a pause of `first` seconds, then twice that, and so on, but never more than `most`."""

    def retry_when(self, fn: Callable[[Exception, int], Publisher[object]]) -> Pipeline[In_contra, Out_co]:
        """The source; where it fails, it comes once more as soon as the publisher `fn(error, attempt)` has an element."""

    def sample(self, sampler: Publisher[object] | float, *, clock: Clock | None = ...) -> Pipeline[In_contra, Out_co]:
        """The latest element of the source, every so many seconds, or whenever `sampler` has an element."""

    def scan(self, fn: Callable[[S, Out_co], S], initial: S) -> Pipeline[In_contra, S]:
        """The running fold: `initial` is folded with each element, and each result goes on."""

    def serialize(self) -> Pipeline[In_contra, Out_co]:
        """For a source that breaks rule 1.3, and signals on several threads at once: its signals, one at a time."""

    def share(self, *, capacity: int = ...) -> Pipeline[In_contra, Out_co]:
        """One subscription to the source for all subscribers: `publish().ref_count()`."""

    @overload
    def single(self) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def single(self, default: R) -> Pipeline[In_contra, Out_co | R]:
        """The only element; an error where there are several."""

    def skip(self, n: int) -> Pipeline[In_contra, Out_co]:
        """All but the first `n` elements."""

    def skip_last(self, n: int) -> Pipeline[In_contra, Out_co]:
        """All but the last `n` elements: each comes when `n` more have come."""

    def skip_until(self, other: Publisher[object]) -> Pipeline[In_contra, Out_co]:
        """The source from when `other` has signalled an element; what comes before is dropped, to the hook."""

    def skip_while(self, predicate: Callable[[Out_co], object]) -> Pipeline[In_contra, Out_co]:
        """The elements from the first one on for which `predicate(element)` is false."""

    @overload
    def sort(
        self: PipelineOperators[In_contra, SupportsRichComparison],
        *,
        key: None = ...,
        reverse: bool = ...,
        capacity: int = ...,
        folder: Folder = ...,
    ) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def sort(
        self,
        *,
        key: Callable[[Out_co], SupportsRichComparison],
        reverse: bool = ...,
        capacity: int = ...,
        folder: Folder = ...,
    ) -> Pipeline[In_contra, Out_co]:
        """All elements, sorted, when the source has completed; equal elements keep the order of the source."""

    @overload
    def starmap(self: PipelineOperators[In_contra, tuple[*Ts,]], fn: Callable[[*Ts], R]) -> Pipeline[In_contra, R]: ...
    @overload
    def starmap(self: PipelineOperators[In_contra, tuple[Any, ...]], fn: Callable[..., R]) -> Pipeline[In_contra, R]:
        """Each element, a tuple, becomes `fn(*element)`."""

    def start_with(self, *elements: R) -> Pipeline[In_contra, Out_co | R]:
        """First `elements`, and then the source."""

    def subscribe_on(self, executor: Executor) -> Pipeline[In_contra, Out_co]:
        """The source runs on `executor`: its iterator is made, pulled and closed there."""

    def sum(self: PipelineOperators[In_contra, Summable[N_co]]) -> Pipeline[In_contra, N_co]:
        """The sum of the elements, by `+`."""

    def switch_if_empty(self, other: Publisher[R]) -> Pipeline[In_contra, Out_co | R]:
        """The source, or `other` where the source completes without an element."""

    def switch_map(self, fn: Callable[[Out_co], Publisher[R]], *, prefetch: int = ...) -> Pipeline[In_contra, R]:
        """Each element becomes the publisher `fn(element)`, which takes the place of the one before: that is cancelled."""

    def take(self, n: int) -> Pipeline[In_contra, Out_co]:
        """The first `n` elements."""

    def take_last(self, n: int) -> Pipeline[In_contra, Out_co]:
        """The last `n` elements, when the source completes."""

    def take_until(self, other: Publisher[object]) -> Pipeline[In_contra, Out_co]:
        """The source, until `other` signals an element or completes: the flow then completes, and cancels the source."""

    def take_while(self, predicate: Callable[[Out_co], object]) -> Pipeline[In_contra, Out_co]:
        """The elements before the first one for which `predicate(element)` is false."""

    def tap(self, listener: Listener) -> Pipeline[In_contra, Out_co]:
        """All signals go to `listener` before they go on."""

    def throttle(self, seconds: float, *, clock: Clock | None = ...) -> Pipeline[In_contra, Out_co]:
        """An element, and then none for `seconds`; those that come meanwhile are dropped, to the hook."""

    @overload
    def timeout(
        self, seconds: float, *, clock: Clock | None = ..., fallback: None = ...
    ) -> Pipeline[In_contra, Out_co]: ...
    @overload
    def timeout(
        self, seconds: float, *, clock: Clock | None = ..., fallback: Publisher[R]
    ) -> Pipeline[In_contra, Out_co | R]:
        """The source; where an element that is demanded takes longer than `seconds`, a TimeoutError, or `fallback`."""

    def timestamp(self, *, clock: Clock | None = ...) -> Pipeline[In_contra, tuple[float, Out_co]]:
        """Each element with its time: pairs `(seconds, element)`."""

    @overload
    def to_dict(
        self: PipelineOperators[In_contra, T], key: Callable[[T], K], value: None = ...
    ) -> Pipeline[In_contra, dict[K, T]]: ...
    @overload
    def to_dict(self, key: Callable[[Out_co], K], value: Callable[[Out_co], V]) -> Pipeline[In_contra, dict[K, V]]:
        """The dict of all elements, by their keys."""

    def to_list(self) -> Pipeline[In_contra, list[Out_co]]:
        """The list of all elements."""

    def transform(self, fn: Callable[[Flow[Out_co]], Flow[R]]) -> Pipeline[In_contra, R]:
        """The flow `fn(source)`: a name for several operators."""

    def window(self, n: int, *, skip: int | None = ...) -> Pipeline[In_contra, Flow[Out_co]]:
        """Flows of `n` elements each; a window begins with every `skip`-th element."""

    def window_time(
        self, seconds: float, *, every: float | None = ..., clock: Clock | None = ..., prefetch: int = ...
    ) -> Pipeline[In_contra, Flow[Out_co]]:
        """Flows of the elements that come in `seconds`; a window begins `every` so many seconds."""

    def window_timeout(self, n: int, seconds: float, *, clock: Clock | None = ...) -> Pipeline[In_contra, Flow[Out_co]]:
        """Flows of `n` elements, or of those that come in `seconds` after the first of them."""

    def window_until(
        self, predicate: Callable[[Out_co], object], *, cut_before: bool = ..., prefetch: int = ...
    ) -> Pipeline[In_contra, Flow[Out_co]]:
        """Flows that end with an element for which `predicate(element)` is true."""

    def window_when(self, boundary: Publisher[object], *, prefetch: int = ...) -> Pipeline[In_contra, Flow[Out_co]]:
        """Flows of the elements that come between two elements of `boundary`; none where nothing came."""

    @overload
    def with_context(
        self: PipelineOperators[In_contra, InContext[T]], fn: Callable[[ContextFlow[T]], ContextFlow[R]]
    ) -> Pipeline[In_contra, R]: ...
    @overload
    def with_context(self, fn: Callable[[ContextFlow[Out_co]], ContextFlow[R]]) -> Pipeline[In_contra, R]:
        """The flow `fn(source)`, whose functions run in the context of the code that emitted the element."""

    @overload
    def with_latest_from(
        self: PipelineOperators[In_contra, A], other: Publisher[B], /
    ) -> Pipeline[In_contra, tuple[A, B]]: ...
    @overload
    def with_latest_from(
        self: PipelineOperators[In_contra, A], other: Publisher[B], third: Publisher[C], /
    ) -> Pipeline[In_contra, tuple[A, B, C]]: ...
    @overload
    def with_latest_from(
        self: PipelineOperators[In_contra, A], other: Publisher[B], third: Publisher[C], fourth: Publisher[D], /
    ) -> Pipeline[In_contra, tuple[A, B, C, D]]: ...
    @overload
    def with_latest_from(self, *others: Publisher[R]) -> Pipeline[In_contra, tuple[Out_co | R, ...]]:
        """Each element of the source with the latest one of each of `others`."""

    @overload
    def zip_with(
        self: PipelineOperators[In_contra, A], other: Publisher[B], /, *, prefetch: int = ...
    ) -> Pipeline[In_contra, tuple[A, B]]: ...
    @overload
    def zip_with(
        self: PipelineOperators[In_contra, A], other: Publisher[B], third: Publisher[C], /, *, prefetch: int = ...
    ) -> Pipeline[In_contra, tuple[A, B, C]]: ...
    @overload
    def zip_with(
        self: PipelineOperators[In_contra, A],
        other: Publisher[B],
        third: Publisher[C],
        fourth: Publisher[D],
        /,
        *,
        prefetch: int = ...,
    ) -> Pipeline[In_contra, tuple[A, B, C, D]]: ...
    @overload
    def zip_with(self, *others: Publisher[R], prefetch: int = ...) -> Pipeline[In_contra, tuple[Out_co | R, ...]]:
        """Tuples of the elements of the source and of `others`, as `zip` does."""
