"""Values, errors and threads between Python and the JVM; what becomes of each is said in `interop.jvm`."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any, Final

import jpype

from reactive_runtime._core.runtime import primitives

__all__ = [
    "Raising",
    "described_by_java",
    "element_of",
    "entering_java",
    "exception_of",
    "java_thread",
    "known_as",
    "not_null",
    "object_of",
    "text_of",
    "throwable_of",
]

# -- threads --------------------------------------------------------------------------------------------------


class _Detaching:
    """Detaches the thread that made it from the JVM, at the end of that thread: then its local values are dropped."""

    __slots__ = ("_detach", "_ident", "_thread")

    def __init__(self) -> None:
        # Its own references: at the end of the interpreter the module may have none.
        self._ident = primitives.get_ident
        self._thread = self._ident()
        self._detach = java_thread().detach

    def __del__(self) -> None:
        # Another thread drops it in the child of a fork, and at the end of the interpreter.
        if self._ident() == self._thread:
            self._detach()


class _ThisThread(primitives.ThreadLocal):
    """State of each thread."""

    detaching: _Detaching | None = None


_here: Final = _ThisThread()


class _Collections:
    """Leaves a thread unknown to Java that is unknown to Java when a collection of Python's garbage begins there.

    A collection may run on any thread of Python. JPype attaches that thread to release objects of Java, and in its own
    callback, which may have Java collect its garbage too.
    """

    def __init__(self, thread: Any) -> None:
        self._is_attached, self._detach = thread.isAttached, thread.detach
        self._unknown: bool = False  # the collection's; there is one at a time

    def install(self) -> None:
        """Be called before and after what JPype does."""
        gc.callbacks.insert(0, self._begins)
        gc.callbacks.append(self._ends)

    def _begins(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._unknown = not self._is_attached()

    def _ends(self, phase: str, _: dict[str, int]) -> None:
        if phase == "stop" and self._unknown:
            self._detach()


@functools.cache
def java_thread() -> Any:
    """The class, with what JPype adds to it."""
    thread = jpype.JClass("java.lang.Thread")
    _Collections(thread).install()
    return thread


def entering_java() -> None:
    """A call into Java follows, for which JPype attaches the thread, for good; one that is attached is left so."""
    if not java_thread().isAttached():
        _here.detaching = _Detaching()


# -- elements -------------------------------------------------------------------------------------------------

_UNBOXED: Final[dict[str, Any]] = {
    **dict.fromkeys(("java.lang.Byte", "java.lang.Short", "java.lang.Integer", "java.lang.Long"), int),
    **dict.fromkeys(("java.lang.Float", "java.lang.Double"), float),
    "java.lang.Character": str,
    "java.lang.Boolean": bool,
}


def element_of(element: Any) -> Any:
    """An element that came from Java."""
    if isinstance(element, jpype.JString):
        return _str_of(element)
    unboxed = _UNBOXED.get(type(element).__name__) if isinstance(element, jpype.JObject) else None
    return element if unboxed is None else unboxed(element)


def object_of(element: Any) -> Any:
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
    with Raising():
        return item is other or bool(item == other)


def _hash_code(item: object) -> int:
    with Raising():
        code = hash(item)
        return ((code ^ (code >> 32)) + 2**31) % 2**32 - 2**31  # an int of 32 bits


def _to_string(item: object) -> str:
    return text_of(item, str)


_METHODS: Final = {"equals": _equals, "hashCode": _hash_code, "toString": _to_string}


# -- errors ---------------------------------------------------------------------------------------------------


def text_of(item: object, shown: Callable[[object], str]) -> str:
    r"""The text that `str` or `repr` gives, where it gives one. A lone surrogate is written as `\udc80`."""
    try:
        text = shown(item)
    except Exception as raised:
        text = f"a {type(item).__name__}, whose __{shown.__name__}__ raised {type(raised).__name__}"
    return str.encode(text, "utf-8", "backslashreplace").decode()  # a str, also where it gave one of a subclass


def described_by_java(item: Any) -> str:
    """The text that `toString` gives, where it gives one."""
    entering_java()
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


def known_as(error: BaseException, throwable: Any) -> Any:
    """The same Throwable; when it comes back, it is `error`."""
    _Errors.known().put(throwable, _opaque(error))
    return throwable


class _IllegalArgumentError(ValueError):
    """An IllegalArgumentException of Java (3.9)."""

    def __init__(self, throwable: Any) -> None:
        message = throwable.getMessage()
        super().__init__("" if message is None else _str_of(message))
        self.__cause__ = self.throwable = throwable


def exception_of(throwable: Any) -> BaseException:
    """A Throwable that came from Java."""
    if type(throwable).__name__ in _STANDING_FOR:
        known: BaseException | None = _Errors.known().get(throwable)
        if known is not None:
            return known
    illegal = isinstance(throwable, jpype.JClass("java.lang.IllegalArgumentException"))
    exception: BaseException = _IllegalArgumentError(throwable) if illegal else throwable
    return exception


def throwable_of(error: BaseException) -> Any:
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
    kind, text, java = type(error), text_of(error, str), jpype.JPackage("java").lang
    if issubclass(kind, ValueError):
        throwable = java.IllegalArgumentException(text)
    elif issubclass(kind, TypeError):
        throwable = _null_pointer(text)
    else:
        throwable = java.RuntimeException(f"{kind.__name__}: {text}")
    if cause is not None:
        throwable.initCause(cause)
    return known_as(error, throwable)


def not_null(argument: Any, call: str) -> None:
    """2.13, 1.9, as Java has them."""
    if argument is None:
        raise _null_pointer(f"{call}: null is not allowed (1.9, 2.13)")


def _null_pointer(message: str) -> Any:
    """A NullPointerException, made by reflection: JPype makes it a ValueError too, and called, it comes out empty."""
    lang = jpype.JPackage("java").lang
    constructor = lang.NullPointerException.class_.getConstructor(lang.String.class_)
    objects: Any = jpype.JArray(jpype.JObject)
    return constructor.newInstance(objects([message]))


class Raising:
    """Raises an exception of Python as a Throwable, out of a method that Java has called."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, jpype.JException):
            raise throwable_of(error) from error
