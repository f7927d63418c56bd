"""Python ↔ the JVM, in one process: `org.reactivestreams` and `java.util.concurrent.Flow`, by JPype.

RxJava, Reactor or Pekko on the one side, publishers, subscribers and processors of Python on the other; demand, errors
and cancellation cross as they are. `start` a JVM with the jars that are wanted; then `to_java` and `from_java` hand a
thing across. Nothing is buffered here, and no thread is added: a signal runs to its end on the thread it came on, which
JPype attaches to the other side. A thread that comes to Java through here is detached again when it ends. Java's `long`
has the range of the demand (3.17).

    Python                                          Java
    an element: int, float, bool, str               Long, Double, Boolean, String
    any other element                               an opaque object, itself again when it comes back
    an element that came from Java                  itself
    an exception                                    a RuntimeException with its text, itself again when it comes back
    a ValueError, a TypeError                       an IllegalArgumentException, a NullPointerException, likewise
    the cause of an exception                       the cause
    a Throwable of Java                             a JException, itself again when it goes back
    an IllegalArgumentException of Java             a ValueError (3.9), likewise

A str arrives character by character, also with lone surrogates, of which a String can hold any; but two characters that
are the halves of one, side by side, it can't: a str with those is opaque. In the text of an exception, and in what
`toString` gives, a lone surrogate is escaped by a backslash; where `__str__` raises, the text says so. Opaque objects
are compared by `==` and `hash`.

Each heap has a garbage collector of its own, and neither sees a cycle through both. So a subscriber of Python is
released here when its stream has ended or was cancelled (3.13), and a stream that does neither is kept; a subscription
of Python that holds its subscriber of Java after the end holds it for ever. Those of this package do not. Python gets
the exception of a Java method as it is. An item that breaks the rules on one side breaks them on the other.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._spec import MAX_DEMAND, Processor, Publisher, Subscriber, Subscription
from reactive_runtime.errors import MissingDependencyError, ReactiveError

try:
    import jpype
except ImportError as _error:
    raise MissingDependencyError(
        "reactive_runtime.interop.jvm needs JPype: pip install 'reactive-runtime[jvm]'"
    ) from _error

from reactive_runtime.interop._java_values import (
    Raising,
    described_by_java,
    element_of,
    entering_java,
    exception_of,
    java_thread,
    known_as,
    not_null,
    object_of,
    text_of,
    throwable_of,
)

__all__ = ["from_java", "start", "to_java"]

Api = Literal["reactive-streams", "flow"]

PACKAGES: Final[dict[str, str]] = {"reactive-streams": "org.reactivestreams.", "flow": "java.util.concurrent.Flow$"}
SUBSCRIBER: Final = ("on_subscribe", "on_next", "on_error", "on_complete")


def start(classpath: Iterable[str | os.PathLike[str]] = (), *options: str) -> None:
    """Start the JVM of this process. Does nothing where one is running.

    A process has one JVM, and can't start it anew; a class path that is given later is added to it.

    Args:
        classpath: Jars and folders.
        *options: Options of the JVM, as on its command line. They have no effect where it is running.

    Raises:
        ReactiveError: There is no JVM to start, or a path is not there.
    """
    paths = [Path(path) for path in classpath]
    for path in paths:
        if not path.exists():
            raise ReactiveError(f"jvm.start: {path} is not there")
    if jpype.isJVMStarted():
        for path in paths:
            jpype.addClassPath(str(path.resolve()))
        return
    try:
        jpype.startJVM(
            # -Xrs: Ctrl-C stays with Python.
            "-Xrs",
            *options,
            classpath=[str(path) for path in paths],
            convertStrings=False,
        )
    except (OSError, ValueError, jpype.JVMNotFoundException) as error:
        raise ReactiveError(f"jvm.start: no JVM; install a JDK or set JAVA_HOME ({error})") from error
    java_thread()  # to look it up attaches a thread: this one, which is attached


def to_java(item: Any, *, api: Api = "reactive-streams") -> Any:
    """A publisher, subscriber or processor of Python, as Java sees it: its methods decide which.

    Args:
        item: The publisher, subscriber or processor.
        api: The interfaces: "reactive-streams" for `org.reactivestreams`, whose jar has to be on the class path, or
            "flow" for `java.util.concurrent.Flow`.

    Returns:
        A Java object of the interface.

    Raises:
        TypeError: `item` is none of the three.
        ValueError: `api` is none of the two.
        ReactiveError: There is no JVM yet, or the jar is not on the class path.

    Thread:
        A signal runs to its end on the thread it came on. One of Python's that was not attached to the JVM is attached
        by its first signal, and detached when it ends.
    """
    _running()
    publishes, subscribes = callable(getattr(item, "subscribe", None)), all(hasattr(item, name) for name in SUBSCRIBER)
    if publishes and subscribes:
        return _proxy(api, "Processor", _JavaProcessor(item, api))
    if publishes:
        return _proxy(api, "Publisher", _JavaPublisher(item, api))
    if subscribes:
        return _proxy(api, "Subscriber", _JavaSubscriber(item, api))
    raise TypeError(f"to_java: a Publisher, Subscriber or Processor is needed, not {type(item).__name__}")


def from_java(item: Any) -> Any:
    """A publisher, subscriber or processor of Java, of either API, as Python sees it.

    Args:
        item: A Java object. An object that `to_java` handed to Java comes back as a view of that.

    Returns:
        An object with the methods of `Publisher`, `Subscriber` or `Processor`.

    Raises:
        TypeError: `item` is none of the three.
        ReactiveError: There is no JVM yet.

    Thread:
        A signal runs to its end on the thread it came on. One of Python's that was not attached to the JVM is attached
        by its first signal, and detached when it ends.
    """
    _running()
    for api in PACKAGES:
        try:
            kinds = {kind: jpype.JClass(PACKAGES[api] + kind) for kind in ("Processor", "Publisher", "Subscriber")}
        except TypeError:  # the jar is not on the class path, so nothing can be of its classes
            continue
        view: Any
        for kind, view in (
            ("Processor", _ProcessorView),
            ("Publisher", _PublisherView),
            ("Subscriber", _SubscriberView),
        ):
            if isinstance(item, kinds[kind]):
                return view(item, api)
    raise TypeError(f"from_java: a Publisher, Subscriber or Processor of Java is needed, not {type(item).__name__}")


def _running() -> None:
    if not jpype.isJVMStarted():
        raise ReactiveError("there is no JVM yet: call reactive_runtime.interop.jvm.start(classpath) first")
    entering_java()


def _proxy(api: Api, kind: str, target: object) -> Any:
    try:
        interface = jpype.JClass(PACKAGES[api] + kind)
    except KeyError:
        raise ValueError(f"api: one of {', '.join(map(repr, PACKAGES))} is needed, not {api!r}") from None
    except TypeError as error:
        raise ReactiveError("to_java: org.reactivestreams is not on the class path; jvm.start([jar, ...])") from error
    return jpype.JObject(jpype.JProxy(interface, inst=target), interface)


def _as(api: Api, kind: str, item: Any) -> Any:
    """The item as its interface of Java: JPype gives back a proxy of ours as such, without methods of Java to call."""
    return jpype.JObject(item, jpype.JClass(PACKAGES[api] + kind)) if isinstance(item, jpype.JProxy) else item


# -- Python, as Java sees it: every method is called by Java, on a thread of Java's or of Python's ------------


class _JavaPublisher:
    """A publisher of Python behind the Java interface."""

    def __init__(self, publisher: Publisher[Any], api: Api) -> None:
        self._publisher = publisher
        self._api: Api = api

    def subscribe(self, subscriber: Any) -> None:
        not_null(subscriber, "subscribe(null)")
        with Raising():
            self._publisher.subscribe(_SubscriberView(_as(self._api, "Subscriber", subscriber), self._api))

    def toString(self) -> str:  # noqa: N802
        return text_of(self._publisher, repr)


class _JavaSubscriber:
    """A subscriber of Python behind the Java interface."""

    def __init__(self, subscriber: Subscriber[Any], api: Api) -> None:
        # Strong until the stream has ended or was cancelled, weak from then on: what comes late still arrives, if the
        # subscriber is there (2.8), but Java does not keep it alive (3.13). Where it is gone, `_late` hears of it.
        # Written by `_release`, the strong one last, and only there; two that release at once write the same.
        self._subscriber: Subscriber[Any] | None = subscriber
        self._weak: Callable[[], Subscriber[Any] | None] = _no_subscriber
        self._late: Subscriber[Any] = _GONE
        self._subscribed = False  # serial signals own it (1.3)
        self._api: Api = api

    def _receiver(self) -> Subscriber[Any]:
        subscriber = self._subscriber
        if subscriber is None:
            subscriber = self._weak()
        return self._late if subscriber is None else subscriber

    def _release(self) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        with contextlib.suppress(TypeError):  # it can't be referred to weakly
            self._weak = weakref.ref(subscriber)
        recorded = getattr(type(subscriber), "recorded_in_its_place", None)
        if recorded is not None:
            self._late = recorded(subscriber, _GONE)
        self._subscriber = None

    def onSubscribe(self, subscription: Any) -> None:  # noqa: N802
        not_null(subscription, "onSubscribe(null)")
        subscriber = self._receiver()
        # To cancel a second subscription (2.5) is not the end of the first.
        release = _nothing_to_release if self._subscribed else self._release
        self._subscribed = True
        with Raising():
            subscriber.on_subscribe(_SubscriptionView(_as(self._api, "Subscription", subscription), release))

    def onNext(self, element: Any) -> None:  # noqa: N802
        not_null(element, "onNext(null)")
        subscriber = self._receiver()
        with Raising():
            subscriber.on_next(element_of(element))

    def onError(self, error: Any) -> None:  # noqa: N802
        not_null(error, "onError(null)")
        subscriber = self._receiver()
        self._release()
        exception = exception_of(error)
        with Raising():
            subscriber.on_error(exception)

    def onComplete(self) -> None:  # noqa: N802
        subscriber = self._receiver()
        self._release()
        with Raising():
            subscriber.on_complete()

    def toString(self) -> str:  # noqa: N802
        return text_of(self._receiver(), repr)


class _Gone:
    """Hears late signals in the place of a subscriber that is gone."""

    shown_as: Final = "subscriber that is gone"

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        dropping.element_dropped("it came from Java after its stream had ended", element)

    def on_error(self, error: BaseException, /) -> None:
        dropping.error_dropped("an error of Java after its stream had ended", error)

    def on_complete(self) -> None: ...

    def __repr__(self) -> str:
        return "<a subscriber that is gone>"


_GONE: Final = _Gone()


def _no_subscriber() -> None:
    """Stands for a weak reference whose target is gone."""


def _nothing_to_release() -> None:
    """Releases nothing, at the end of a subscription that its subscriber did not take."""


class _JavaProcessor(_JavaPublisher, _JavaSubscriber):
    """A processor of Python behind the Java interface."""

    def __init__(self, processor: Processor[Any, Any], api: Api) -> None:
        _JavaPublisher.__init__(self, processor, api)
        _JavaSubscriber.__init__(self, processor, api)

    def _release(self) -> None:
        """It is a publisher as well, and is released with that."""


class _JavaSubscription:
    """A subscription of Python behind the Java interface."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def request(self, n: Any) -> None:
        with Raising():
            self._subscription.request(int(n))

    def cancel(self) -> None:
        with Raising():
            self._subscription.cancel()


# -- Java, as Python sees it: every method is called by Python ------------------------------------------------


class _View:
    """Something of Java behind a Python interface."""

    def __del__(self) -> None:
        """Drop the Java object on an attached thread: one that is not, JPype attaches for that, for ever.

        The garbage collector may call this on any thread, also on one that ends, and has been detached: so the thread
        is detached again at once.
        """
        if not jpype.isJVMStarted():
            return
        thread = java_thread()
        if not thread.isAttached():
            thread.attachAsDaemon()
            vars(self).clear()
            thread.detach()


class _PublisherView(_View):
    """A publisher of Java behind the Python interface."""

    shown_as: ClassVar[str] = "publisher of Java"

    def __init__(self, publisher: Any, api: str) -> None:
        self._publisher = publisher
        self._api: Any = api

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        not_none("subscribe", subscriber)
        entering_java()
        self._publisher.subscribe(_proxy(self._api, "Subscriber", _JavaSubscriber(subscriber, self._api)))

    def __repr__(self) -> str:
        return f"from_java({described_by_java(self._publisher)})"


class _SubscriberView(_View):
    """A subscriber of Java behind the Python interface."""

    shown_as: ClassVar[str] = "subscriber of Java"

    is_foreign = True
    """It keeps an object that no collection of Python sees; a recorder in front of it asks."""

    def __init__(self, subscriber: Any, api: str) -> None:
        self._subscriber = subscriber
        self._api: Any = api

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        entering_java()
        self._subscriber.onSubscribe(_proxy(self._api, "Subscription", _JavaSubscription(subscription)))

    def on_next(self, element: Any, /) -> None:
        not_none("on_next", element)
        entering_java()
        self._subscriber.onNext(object_of(element))

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, "the publisher")
        entering_java()
        try:
            throwable = throwable_of(error)
        except BaseException as raised:
            # Only an exit comes here, out of the error's `__str__`. Java hears of the end before it goes on up.
            text = f"{type(error).__name__}: its __str__ raised {type(raised).__name__}"
            self._subscriber.onError(known_as(error, jpype.JPackage("java").lang.RuntimeException(text)))
            dropping.raised("an error on its way to Java has no text: its __str__ raised", raised)
            return
        self._subscriber.onError(throwable)

    def on_complete(self) -> None:
        entering_java()
        self._subscriber.onComplete()

    def __repr__(self) -> str:
        return f"from_java({described_by_java(self._subscriber)})"


class _ProcessorView(_PublisherView, _SubscriberView):
    """A processor of Java behind the Python interface."""

    shown_as: ClassVar[str] = "processor of Java"

    def __init__(self, processor: Any, api: str) -> None:
        _PublisherView.__init__(self, processor, api)
        _SubscriberView.__init__(self, processor, api)


class _SubscriptionView(_View):
    """A subscription of Java behind the Python interface."""

    def __init__(self, subscription: Any, release: Callable[[], None]) -> None:
        self._subscription = subscription
        self._release = release

    def request(self, n: int, /) -> None:
        # 3.9: Java is asked for 0 instead of what is no int, and answers it with onError; 3.17: capped.
        valid = isinstance(n, int) and not isinstance(n, bool)
        entering_java()
        self._subscription.request(max(-1, min(int(n), MAX_DEMAND)) if valid else 0)

    def cancel(self) -> None:
        entering_java()
        self._subscription.cancel()
        self._release()
