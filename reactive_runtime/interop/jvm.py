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
of Python that holds its subscriber of Java after the end holds it for ever. Those of this package do not. What a Java
method raises is raised in Python as it is. What breaks the rules on either side does so on the other.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._spec import MAX_DEMAND, Processor, Publisher, Subscriber, Subscription
from reactive_runtime.errors import MissingDependencyError, ReactiveError

try:
    import jpype
except ImportError as _error:
    raise MissingDependencyError(
        "reactive_runtime.interop.jvm needs JPype: pip install 'reactive-runtime[jvm]'"
    ) from _error

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
    _java_thread()  # to look it up attaches a thread: this one, which is attached


def to_java(item: Any, *, api: Api = "reactive-streams") -> Any:
    """A publisher, subscriber or processor of Python, as Java sees it: its methods decide which.

    Args:
        item: The publisher, subscriber or processor.
        api: Whose interfaces: "reactive-streams" for `org.reactivestreams`, whose jar has to be on the class path, or
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
        item: A Java object. What was handed to Java by `to_java` comes back as a view of that.

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
    _entering_java()


def _proxy(api: Api, kind: str, target: object) -> Any:
    try:
        interface = jpype.JClass(PACKAGES[api] + kind)
    except KeyError:
        raise ValueError(f"api: one of {', '.join(map(repr, PACKAGES))} is needed, not {api!r}") from None
    except TypeError as error:
        raise ReactiveError("to_java: org.reactivestreams is not on the class path; jvm.start([jar, ...])") from error
    return jpype.JObject(jpype.JProxy(interface, inst=target), interface)


def _as(api: Api, kind: str, item: Any) -> Any:
    """What Java hands to Python: JPype gives back a proxy of ours as such, with no methods of Java's to call."""
    return jpype.JObject(item, jpype.JClass(PACKAGES[api] + kind)) if isinstance(item, jpype.JProxy) else item


# -- Python, as Java sees it: every method is called by Java, on a thread of Java's or of Python's ------------


class _JavaPublisher:
    """A publisher of Python behind the Java interface."""

    def __init__(self, publisher: Publisher[Any], api: Api) -> None:
        self._publisher = publisher
        self._api: Api = api

    def subscribe(self, subscriber: Any) -> None:
        _not_null(subscriber, "subscribe(null)")
        with _Raising():
            self._publisher.subscribe(_SubscriberView(_as(self._api, "Subscriber", subscriber), self._api))

    def toString(self) -> str:  # noqa: N802
        return _text_of(self._publisher, repr)


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
        _not_null(subscription, "onSubscribe(null)")
        subscriber = self._receiver()
        # To cancel a second subscription (2.5) is not the end of the first.
        release = _nothing_to_release if self._subscribed else self._release
        self._subscribed = True
        with _Raising():
            subscriber.on_subscribe(_SubscriptionView(_as(self._api, "Subscription", subscription), release))

    def onNext(self, element: Any) -> None:  # noqa: N802
        _not_null(element, "onNext(null)")
        subscriber = self._receiver()
        with _Raising():
            subscriber.on_next(_element_of(element))

    def onError(self, error: Any) -> None:  # noqa: N802
        _not_null(error, "onError(null)")
        subscriber = self._receiver()
        self._release()
        exception = _exception_of(error)
        with _Raising():
            subscriber.on_error(exception)

    def onComplete(self) -> None:  # noqa: N802
        subscriber = self._receiver()
        self._release()
        with _Raising():
            subscriber.on_complete()

    def toString(self) -> str:  # noqa: N802
        return _text_of(self._receiver(), repr)


class _Gone:
    """What hears of late signals in the place of a subscriber that is gone."""

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
    """What a weak reference gives when its target is gone."""


def _nothing_to_release() -> None:
    """What the end of a subscription releases that its subscriber did not take."""


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
        with _Raising():
            self._subscription.request(int(n))

    def cancel(self) -> None:
        with _Raising():
            self._subscription.cancel()


class _Raising:
    """What Python raises out of a method that Java has called, Java gets as a Throwable."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, jpype.JException):
            raise _throwable_of(error) from error


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
        thread = _java_thread()
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
        _entering_java()
        self._publisher.subscribe(_proxy(self._api, "Subscriber", _JavaSubscriber(subscriber, self._api)))

    def __repr__(self) -> str:
        return f"from_java({_described(self._publisher)})"


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
        _entering_java()
        self._subscriber.onSubscribe(_proxy(self._api, "Subscription", _JavaSubscription(subscription)))

    def on_next(self, element: Any, /) -> None:
        not_none("on_next", element)
        _entering_java()
        self._subscriber.onNext(_object_of(element))

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, "the publisher")
        _entering_java()
        try:
            throwable = _throwable_of(error)
        except BaseException as raised:
            # Only an exit comes here, out of the error's `__str__`. Java hears of the end before it goes on up.
            text = f"{type(error).__name__}: its __str__ raised {type(raised).__name__}"
            self._subscriber.onError(_known_as(error, jpype.JPackage("java").lang.RuntimeException(text)))
            dropping.raised("an error on its way to Java has no text: its __str__ raised", raised)
            return
        self._subscriber.onError(throwable)

    def on_complete(self) -> None:
        _entering_java()
        self._subscriber.onComplete()

    def __repr__(self) -> str:
        return f"from_java({_described(self._subscriber)})"


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
        _entering_java()
        self._subscription.request(max(-1, min(int(n), MAX_DEMAND)) if valid else 0)

    def cancel(self) -> None:
        _entering_java()
        self._subscription.cancel()
        self._release()


# -- threads --------------------------------------------------------------------------------------------------


class _Detaching:
    """Detaches the thread that made it from the JVM, at the end of that thread: then its local values are dropped."""

    __slots__ = ("_detach", "_ident", "_thread")

    def __init__(self) -> None:
        # Its own references: at the end of the interpreter the module may have none.
        self._ident = primitives.get_ident
        self._thread = self._ident()
        self._detach = _java_thread().detach

    def __del__(self) -> None:
        # Another thread drops it in the child of a fork, and at the end of the interpreter.
        if self._ident() == self._thread:
            self._detach()


class _ThisThread(primitives.ThreadLocal):
    """What each thread knows of itself."""

    detaching: _Detaching | None = None


_here: Final = _ThisThread()


@functools.cache
def _java_thread() -> Any:
    """The class, with what JPype adds to it."""
    return jpype.JClass("java.lang.Thread")


def _entering_java() -> None:
    """A call into Java follows, for which JPype attaches the thread, for good; one that is attached is left so."""
    if not _java_thread().isAttached():
        _here.detaching = _Detaching()


# -- elements -------------------------------------------------------------------------------------------------

_UNBOXED: Final[dict[str, Any]] = {
    **dict.fromkeys(("java.lang.Byte", "java.lang.Short", "java.lang.Integer", "java.lang.Long"), int),
    **dict.fromkeys(("java.lang.Float", "java.lang.Double"), float),
    "java.lang.Character": str,
    "java.lang.Boolean": bool,
}


def _element_of(element: Any) -> Any:
    """An element that came from Java."""
    if isinstance(element, jpype.JString):
        return _str_of(element)
    unboxed = _UNBOXED.get(type(element).__name__) if isinstance(element, jpype.JObject) else None
    return element if unboxed is None else unboxed(element)


def _object_of(element: Any) -> Any:
    """An element on its way to Java: Java can hold anything, if it does not have to look inside."""
    kind = type(element)
    if kind is str:
        return _string_of(element)
    if kind in (bool, float) or (kind is int and -(2**63) <= element < 2**63) or issubclass(kind, jpype.JObject):
        return element
    return _opaque(element)


def _string_of(text: str) -> Any:
    """The same characters for Java, also where one is half of a pair: a lone surrogate, which JPype can't write."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        units = text.encode("utf-16-be", "surrogatepass")
        if units.decode("utf-16-be", "surrogatepass") != text:  # two halves side by side are one character in Java
            return _opaque(text)
        array: Any = jpype.JArray(jpype.JByte)
        return jpype.JPackage("java").nio.ByteBuffer.wrap(array(units)).asCharBuffer().toString()
    return text


def _str_of(string: Any) -> str:
    """The same characters for Python. JPype can't read one half of a pair, and takes two in the wrong order for one."""
    try:
        text = str(string)
        if text.isascii() or max(text) <= "\uffff":
            return text
    except UnicodeDecodeError:
        pass  # as below
    return memoryview(string.toCharArray()).tobytes().decode(f"utf-16-{sys.byteorder[0]}e", "surrogatepass")


def _opaque(item: object) -> Any:
    """A Java object that stands for `item`; it comes back as `item`."""
    return jpype.JProxy("java.io.Serializable", dict=_METHODS, inst=item, convert=True)


def _equals(item: object, other: object) -> bool:
    with _Raising():
        return item is other or bool(item == other)


def _hash_code(item: object) -> int:
    with _Raising():
        code = hash(item)
        return ((code ^ (code >> 32)) + 2**31) % 2**32 - 2**31  # an int of 32 bits


def _to_string(item: object) -> str:
    return _text_of(item, str)


_METHODS: Final = {"equals": _equals, "hashCode": _hash_code, "toString": _to_string}


# -- errors ---------------------------------------------------------------------------------------------------


def _text_of(item: object, shown: Callable[[object], str]) -> str:
    r"""What `str` or `repr` gives, where it gives something. A lone surrogate is written as `\udc80`."""
    try:
        text = shown(item)
    except Exception as raised:
        text = f"a {type(item).__name__}, whose __{shown.__name__}__ raised {type(raised).__name__}"
    return str.encode(text, "utf-8", "backslashreplace").decode()  # a str, also where it gave one of a subclass


def _described(item: Any) -> str:
    """What `toString` gives, where it gives something."""
    _entering_java()
    try:
        return _str_of(item.toString())
    except jpype.JException as raised:
        return f"a {type(item).__name__}, whose toString raised {type(raised).__name__}"


class _Errors:
    """Which exception of Python a Throwable stands for, as long as Java has it."""

    _lock = primitives.Lock()
    _map: Any = None  # _lock, to make it; the map locks itself

    @classmethod
    def known(cls) -> Any:
        with cls._lock:
            if cls._map is None:
                java = jpype.JPackage("java").util
                cls._map = java.Collections.synchronizedMap(java.WeakHashMap())
            return cls._map


_STANDING_FOR: Final = frozenset(
    ("java.lang.RuntimeException", "java.lang.IllegalArgumentException", "java.lang.NullPointerException")
)
"""The classes of the Throwables that are made here. Their `equals` and `hashCode` are those of Object."""


def _known_as(error: BaseException, throwable: Any) -> Any:
    """The same Throwable; when it comes back, it is `error`."""
    _Errors.known().put(throwable, _opaque(error))
    return throwable


class _IllegalArgumentError(ValueError):
    """An IllegalArgumentException of Java (3.9)."""

    def __init__(self, throwable: Any) -> None:
        message = throwable.getMessage()
        super().__init__("" if message is None else _str_of(message))
        self.__cause__ = self.throwable = throwable


def _exception_of(throwable: Any) -> BaseException:
    """A Throwable that came from Java."""
    if type(throwable).__name__ in _STANDING_FOR:
        known: BaseException | None = _Errors.known().get(throwable)
        if known is not None:
            return known
    illegal = isinstance(throwable, jpype.JClass("java.lang.IllegalArgumentException"))
    exception: BaseException = _IllegalArgumentError(throwable) if illegal else throwable
    return exception


def _throwable_of(error: BaseException) -> Any:
    """An exception on its way to Java, with its causes."""
    chain: list[BaseException] = []  # each is caused by the next; no exception twice
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        chain.append(cause)
        seen.add(id(cause))
        cause = None if _of_java(cause) is not None else _cause_of(cause)
    throwable: Any = None
    for each in reversed(chain):
        theirs = _of_java(each)
        throwable = _made(each, throwable) if theirs is None else theirs
    return throwable


_cause_of: Final[Callable[[BaseException], BaseException | None]] = vars(BaseException)["__cause__"].__get__
"""`__cause__` as it was set, whatever a subclass makes of the name."""


def _of_java(error: BaseException) -> Any:
    """The Throwable that `error` is, or stands for; None where it is of Python."""
    if issubclass(type(error), jpype.JException):
        return error
    return error.throwable if type(error) is _IllegalArgumentError else None


def _made(error: BaseException, cause: Any) -> Any:
    """A Throwable that stands for `error`."""
    kind, text, java = type(error), _text_of(error, str), jpype.JPackage("java").lang
    if issubclass(kind, ValueError):
        throwable = java.IllegalArgumentException(text)
    elif issubclass(kind, TypeError):
        throwable = _null_pointer(text)
    else:
        throwable = java.RuntimeException(f"{kind.__name__}: {text}")
    if cause is not None:
        throwable.initCause(cause)
    return _known_as(error, throwable)


def _not_null(argument: Any, call: str) -> None:
    """2.13, 1.9, as Java has them."""
    if argument is None:
        raise _null_pointer(f"{call}: null is not allowed (1.9, 2.13)")


def _null_pointer(message: str) -> Any:
    """A NullPointerException, made by reflection: JPype makes it a ValueError too, and called, it comes out empty."""
    lang = jpype.JPackage("java").lang
    constructor = lang.NullPointerException.class_.getConstructor(lang.String.class_)
    objects: Any = jpype.JArray(jpype.JObject)
    return constructor.newInstance(objects([message]))
