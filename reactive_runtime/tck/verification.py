"""What every verification is made of: checks, which test runners find by their own names, and a report of all.

A check is a method that takes a `TestEnvironment`. The decorator makes of it a test without arguments, so that pytest
and the command run the same thing; pytest collects it because of its attribute `__test__`, whatever its name begins
with.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast
from unittest import SkipTest

from reactive_runtime.tck.environment import ConformanceError, NotVerified, TestEnvironment
from reactive_runtime.tck.settings import Settings

__all__ = ["Check", "Outcome", "Skipped", "Verification", "check", "untested"]

V = TypeVar("V", bound="Verification")

_PREFIX = re.compile(r"(extra_)?((required|optional|untested|stochastic)_)?(spec\d+_)?")

Kind = Literal["required", "optional", "untested"]
Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check, by name."""

    name: str
    rule: str
    kind: Kind
    original: bool
    """Whether the kit of the JVM has it too; the others are this kit's own, and their names begin with `extra_`."""

    @property
    def sentence(self) -> str:
        """The name, without what the other fields say."""
        return _PREFIX.sub("", self.name, count=1).replace("_", " ")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one check; `why` is empty where it passed."""

    check: Check
    status: Status
    why: str


class _Marked(Protocol):
    """A check as an attribute of its class."""

    check: Check
    __test__: bool


class Verification:
    """The base of all verifications. The timeouts are in seconds; see `Settings` for what each is for.

    None, the default, takes the environment variable of the original kit, or else the default.
    """

    default_timeout: float | None = None
    default_no_signals_timeout: float | None = None
    default_poll_timeout: float | None = None
    publisher_reference_gc_timeout: float | None = None
    call_timeout: float | None = None

    _settings: ClassVar[tuple[str, ...]] = tuple(Settings.__dataclass_fields__)

    def __init_subclass__(cls, **arguments: Any) -> None:
        """A check that is overridden stays a check."""
        super().__init_subclass__(**arguments)
        for name, own in list(vars(cls).items()):
            function: Any = own
            marked: Any = next((vars(base)[name] for base in cls.__mro__[1:] if name in vars(base)), None)
            if callable(own) and hasattr(marked, "check") and not hasattr(own, "check"):
                function.check, function.__test__ = marked.check, True

    def configure(self: V, **settings: Any) -> V:
        """Set attributes by argument, before those of the class.

        Args:
            **settings: The attributes by name; what is None is left as it is.

        Returns:
            This verification.

        Raises:
            TypeError: The verification has no such attribute.
        """
        for name, value in settings.items():
            if not hasattr(self, name):
                raise TypeError(f"{name} is no setting of {type(self).__name__}")
            if value is not None:
                setattr(self, name, value)
        return self

    @classmethod
    def checks(cls) -> list[Check]:
        """All checks, by rule, and for each rule those of the original kit before those of this one.

        Returns:
            The checks.
        """
        found = (cast(_Marked, getattr(cls, name)) for name in dir(cls) if hasattr(getattr(cls, name), "check"))
        return sorted((finding.check for finding in found), key=_order)

    def outcomes(self) -> Iterator[Outcome]:
        """Run every check, and give each outcome as it comes.

        Yields:
            The outcome of each check.
        """
        for item in self.checks():
            yield self.outcome(item)

    def outcome(self, item: Check) -> Outcome:
        """Run one check.

        Args:
            item: One of `checks()`.

        Returns:
            Whether it passed, failed or was skipped, and why.
        """
        try:
            getattr(self, item.name)()
        except SkipTest as skip:
            return Outcome(item, "skipped", str(skip))
        except Exception as error:
            return Outcome(
                item,
                "failed",
                str(error) if isinstance(error, ConformanceError) else f"{type(error).__name__}: {error}",
            )
        return Outcome(item, "passed", "")

    def settings(self) -> Settings:
        """The timeouts in force.

        Returns:
            The settings.

        Raises:
            ValueError: An attribute or an environment variable is no number above 0.
        """
        return Settings.of({name: getattr(self, name) for name in self._settings})


def check(rule: str, /) -> Callable[[Callable[[V, TestEnvironment], object]], Callable[[V], None]]:
    """Make a method a check of `rule`. Its name says of which kind it is.

    An optional one that fails counts as skipped, with the reason: what is optional can't be broken.
    """

    def decorate(body: Callable[[V, TestEnvironment], object]) -> Callable[[V], None]:
        item = _check_of(body.__name__, rule)

        @functools.wraps(body)
        def run(self: V) -> None:
            __tracebackhide__ = True
            env = TestEnvironment(rule, self.settings())
            try:
                env.run(lambda: body(self, env))
            except ConformanceError as failure:
                if item.kind == "optional" and not item.name.startswith(
                    "optional_spec104"
                ):  # 1.4 is a must, once offered
                    raise NotVerified(f"optional, and not met: {failure}") from failure
                raise

        del run.__wrapped__  # its signature is its own: a test without fixtures
        marked = cast(_Marked, run)
        marked.check, marked.__test__ = item, True
        return run

    return decorate


Skipped = Callable[[Verification], None]
"""A check that says why it can't be made."""


def untested(rule: str, name: str, why: str) -> Skipped:
    """A check that the original kit declares, and can't make: it is skipped, and says `why`."""

    def skip(self: Verification) -> None:
        raise NotVerified(f"rule {rule}: {why}")

    skip.__name__ = skip.__qualname__ = name
    skip.__doc__ = f"Not tested: {why}."
    marked = cast(_Marked, skip)
    marked.check, marked.__test__ = _check_of(name, rule), True
    return skip


def _check_of(name: str, rule: str) -> Check:
    original = not name.startswith("extra_")
    words = name.removeprefix("extra_")
    kind: Kind = (
        "optional" if words.startswith("optional_") else "untested" if words.startswith("untested_") else "required"
    )
    return Check(name, rule, kind, original)


def _order(item: Check) -> tuple[object, ...]:
    chapter, _, number = item.rule.partition(".")
    return (int(chapter), int(number), not item.original, item.name)
