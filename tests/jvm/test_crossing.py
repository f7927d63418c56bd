"""What crosses: every text, and every error."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
from reactive_runtime.tck import HelperPublisher

TEXTS = st.text(st.characters(codec=None), max_size=8) | st.text(
    st.sampled_from(["a", "\0", "\x7f", "é", "\ud83d", "\ude00", "\udcff", "\uffff", "😀", "\U0010ffff"]), max_size=6
)
"""Any characters; and mostly what is difficult, with halves of pairs."""


def flowables() -> Any:
    """RxJava's Flowable."""
    import jpype

    return jpype.JClass("io.reactivex.rxjava3.core.Flowable")


def received(jvm: Any, publisher: Any) -> list[Any]:
    """What Java gets of a publisher of Python, as RxJava's Notifications."""
    import jpype

    signals = flowables().fromPublisher(jvm.to_java(publisher)).materialize().toList()
    return list(signals.timeout(10, jpype.JClass("java.util.concurrent.TimeUnit").SECONDS).blockingGet())


def back(jvm: Any, publisher: Any) -> Sink:
    """What comes back of a publisher of Python that goes to Java."""
    sink = Sink()
    jvm.from_java(flowables().fromPublisher(jvm.to_java(publisher))).subscribe(sink)
    return sink.wait()


def utf_16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def is_utf_16(text: str) -> bool:
    """Whether Java can hold it: no two characters are the halves of one, side by side."""
    return utf_16(text).decode("utf-16-be", "surrogatepass") == text


def units_of(string: Any) -> bytes:
    """The UTF-16 of a String of Java, by Java."""
    return b"".join(int(unit).to_bytes(2, "big") for unit in string.chars().toArray())


def string_of(text: str) -> Any:
    """A String of Java, by Java."""
    import jpype

    builder = jpype.JClass("java.lang.StringBuilder")()
    for character in text:
        builder.appendCodePoint(ord(character))
    return builder.toString()


def escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# -- elements -------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(TEXTS)
@example("\udc80")
@example("\ud83d\ude00")
@example("a\0b")
def test_every_str_arrives_in_java_and_comes_back(jvm: Any, text: str) -> None:
    element, end = received(jvm, Flow.just(text))
    assert end.isOnComplete()
    if is_utf_16(text):
        assert units_of(element.getValue()) == utf_16(text)
    else:
        assert element.getValue() == text  # itself: Java has an opaque object
        assert str(element) == f"OnNextNotification[{escaped(text)}]"
    assert back(jvm, Flow.just(text)).elements == [text]


@settings(max_examples=200)
@given(TEXTS.filter(is_utf_16))
@example("\udc80")
@example("\ud83d")
@example("a\0b")
def test_every_string_of_java_arrives_in_python(jvm: Any, text: str) -> None:
    sink = Sink()
    jvm.from_java(flowables().just(string_of(text))).subscribe(sink)
    assert sink.wait().elements == [text]
    assert type(sink.elements[0]) is str


class Equal:
    """Equal to those of its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.number == other.number

    def __hash__(self) -> int:
        return hash((Equal, self.number))


def test_java_compares_what_it_can_not_read_as_python_does(jvm: Any) -> None:
    elements = [Equal(1), Equal(2), Equal(1), (1, "a"), (1, "a"), 2**70, 2**70]
    distinct = flowables().fromPublisher(jvm.to_java(Flow.just(*elements))).distinct()
    found = Flow.from_publisher(jvm.from_java(distinct)).to_list().block(timeout=PATIENCE)
    assert found == [Equal(1), Equal(2), (1, "a"), 2**70]


def test_what_has_no_hash_is_an_error_where_java_asks_for_it(jvm: Any) -> None:
    sink = Sink()
    jvm.from_java(flowables().fromPublisher(jvm.to_java(Flow.just([1]))).distinct()).subscribe(sink)
    assert "unhashable type: 'list'" in str(sink.wait().error)


# -- errors ---------------------------------------------------------------------------------------------------


class UnspeakableError(Exception):
    """Its `__str__` and `__repr__` raise what it was made with."""

    def __str__(self) -> str:
        raise self.args[0]

    __repr__ = __str__


class UnspeakableValueError(UnspeakableError, ValueError):
    """The same, for an IllegalArgumentException."""


class UnspeakableTypeError(UnspeakableError, TypeError):
    """The same, for a NullPointerException."""


class NoTextError(Exception):
    """Its `__str__` gives no str."""

    __str__ = id  # type: ignore[assignment]


class UntouchableError(Exception):
    """It raises where it is asked for its cause, its class, an attribute, whether it is equal, or for its hash."""

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise OSError("no cause")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise OSError("no class")

    def __getattr__(self, name: str) -> Any:
        raise OSError("no attribute")

    def __eq__(self, other: object) -> bool:
        raise OSError("no equality")

    def __hash__(self) -> int:
        raise OSError("no hash")


KINDS: list[Callable[[str], BaseException]] = [
    OSError,
    ValueError,
    TypeError,
    KeyError,
    StopIteration,
    GeneratorExit,
    SystemExit,
    lambda text: UnicodeEncodeError("utf-8", text + "\ud800", 0, 1, text),
    lambda text: ExceptionGroup(text, [ValueError(text)]),
    lambda text: UnspeakableError(OSError(text)),
    lambda text: UnspeakableValueError(ValueError(text)),
    lambda text: UnspeakableTypeError(RecursionError(text)),
    NoTextError,
    UntouchableError,
]


def caused(error: BaseException, cause: BaseException) -> None:
    """`error.__cause__ = cause`, also where a class has another idea of that."""
    vars(BaseException)["__cause__"].__set__(error, cause)


@st.composite
def chains(draw: st.DrawFn) -> list[BaseException]:
    """An error, its cause, the cause of that, and so on; the last may be caused by one of them."""
    one = st.builds(lambda kind, text: kind(text), st.sampled_from(KINDS), TEXTS)
    chain = draw(st.lists(one, min_size=1, max_size=4))
    for error, cause in itertools.pairwise(chain):
        caused(error, cause)
    if draw(st.booleans()):
        caused(chain[-1], chain[draw(st.integers(0, len(chain) - 1))])
    return chain


def message(error: BaseException) -> str:
    """What Java is to say of it."""
    kind = type(error)
    try:
        text = escaped(str(error))
    except Exception as raised:
        text = f"a {kind.__name__}, whose __str__ raised {type(raised).__name__}"
    return text if issubclass(kind, ValueError | TypeError) else f"{kind.__name__}: {text}"


@settings(max_examples=200)
@given(chains())
def test_every_error_ends_the_stream_in_java_and_is_itself_again(jvm: Any, chain: list[BaseException]) -> None:
    publisher = HelperPublisher(1, lambda n: n, failure=chain[0])
    element, end = received(jvm, publisher)
    assert int(element.getValue()) == 0
    throwable = end.getError()
    for error in chain:
        assert units_of(throwable.getMessage()) == utf_16(message(error))
        throwable = throwable.getCause()
    assert throwable is None
    sink = back(jvm, publisher)
    assert sink.elements == [0]
    assert sink.error is chain[0]


def test_a_long_chain_of_causes_crosses(jvm: Any) -> None:
    error: BaseException = OSError("the first")
    for _ in range(3_000):
        after = OSError("after it")
        caused(after, error)
        error = after
    (end,) = received(jvm, HelperPublisher(0, lambda n: n, failure=error))
    throwable, depth = end.getError(), 0
    while throwable.getCause() is not None:
        throwable, depth = throwable.getCause(), depth + 1
    assert (depth, str(throwable.getMessage())) == (3_000, "OSError: the first")


def test_a_cause_of_java_stays_what_it_is(jvm: Any) -> None:
    import jpype

    theirs, error = jpype.JClass("java.io.IOException")("no net"), OSError("no answer")
    caused(error, theirs)
    (end,) = received(jvm, HelperPublisher(0, lambda n: n, failure=error))
    assert end.getError().getCause() == theirs


def test_java_hears_of_the_end_before_an_exit_out_of_str_goes_up(jvm: Any) -> None:
    signals: list[Any] = []

    class Receiving:
        def onSubscribe(self, subscription: Any) -> None:  # noqa: N802
            signals.append(subscription)

        def onNext(self, element: Any) -> None:  # noqa: N802
            signals.append(element)

        def onError(self, throwable: Any) -> None:  # noqa: N802
            signals.append(throwable)

        def onComplete(self) -> None:  # noqa: N802
            signals.append(None)

    import jpype

    interface = jpype.JClass("org.reactivestreams.Subscriber")
    subscriber = jvm.from_java(jpype.JObject(jpype.JProxy(interface, inst=Receiving()), interface))
    with pytest.raises(SystemExit):
        subscriber.on_error(UnspeakableError(SystemExit(3)))
    (throwable,) = signals
    assert str(throwable.getMessage()) == "UnspeakableError: its __str__ raised SystemExit"


@pytest.mark.parametrize("name", ["Nasty", "Nasty$Argument"])
def test_an_error_of_java_that_no_map_can_hold_ends_the_stream_in_python(jvm: Any, name: str) -> None:
    import jpype

    sink = Sink()
    jvm.from_java(flowables().error(jpype.JClass(f"reactive_runtime.{name}")())).subscribe(sink)
    sink.wait()
    assert str(sink.error) == ("" if "Argument" in name else f"reactive_runtime.{name}")
    (end,) = received(jvm, HelperPublisher(0, lambda n: n, failure=sink.error))
    assert str(end.getError().getClass().getName()) == f"reactive_runtime.{name}"


def test_what_can_not_be_described_is_no_obstacle(jvm: Any) -> None:
    """`toString` of what is Python's and `repr` of what is Java's."""

    class Silent:
        def subscribe(self, subscriber: Any) -> None:
            """Do nothing."""

        def __repr__(self) -> str:
            raise OSError("no repr")

    java = jvm.to_java(Silent())
    assert str(java.toString()) == "a Silent, whose __repr__ raised OSError"
