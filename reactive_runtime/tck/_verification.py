"""The base of every verification: checks, which test runners find under their own names, and a report of all.

A check is a method that takes a `TestEnvironment`. The decorator makes it a test without arguments, so that pytest
and the command run the same; pytest collects it for its attribute `__test__`, whatever its name begins with.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, cast
from unittest import SkipTest, TestCase

from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._running.failures import ConformanceError, NotVerified, described, outside
from reactive_runtime.tck._running.settings import TIMEOUTS, VARIABLES, Settings

__all__ = ["Check", "Outcome", "Skipped", "Status", "Verification", "by_number", "check"]

V = TypeVar("V", bound="Verification")

_PREFIX = re.compile(r"(extra_)?((required|optional|untested|stochastic)_)?(spec\d+_)?")

Kind = Literal["required", "optional", "untested"]
Status = Literal["passed", "failed", "skipped", "not run"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check, by name."""

    name: str
    rule: str
    kind: Kind
    original: bool
    """Whether the kit of the JVM has it too; the names of the others begin with `extra_`."""

    @property
    def may_be_left_out(self) -> bool:
        """Whether an implementation that does not meet it breaks no rule; 1.4 is a MUST for a publisher that fails."""
        return self.kind == "optional" and not self.name.startswith("optional_spec104")

    @property
    def asks_nothing(self) -> bool:
        """Whether it looks only at the settings."""
        return self.name.startswith("required_validate")

    @property
    def sentence(self) -> str:
        """The name without the parts that the other fields hold."""
        return _PREFIX.sub("", self.name, count=1).replace("_", " ")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one check; `why` is empty if it passed.

    A check that is "not run" did not begin, or did not end: it says nothing of the implementation.

    `rule` is the rule that was broken, if the check failed: its own, or another one that it saw broken. It is empty if
    there was nothing to judge: a factory failed.
    """

    check: Check
    status: Status
    why: str
    rule: str = ""


class _Marked(Protocol):
    """A check as an attribute of its class."""

    check: Check
    __test__: bool


class Verification:
    """The base of all verifications. The timeouts are in seconds; `Settings` says what each is for.

    None, the default, takes the environment variable of the original kit, or else the default.
    """

    # Slots, since `vars` of a verification holds only the settings of its user.
    # The thread that runs a check adds a factory, and it stays; one more call of the factory does no harm.
    __slots__ = ("__dict__", "__weakref__", "_hung", "_spun")
    _hung: dict[str, str]
    _spun: dict[str, int]

    default_timeout: float | None = None
    default_no_signals_timeout: float | None = None
    default_poll_timeout: float | None = None
    publisher_reference_gc_timeout: float | None = None
    call_timeout: float | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Keep an overridden check a check. Refuse a class that would lose checks, or pass them unjudged.

        Raises:
            TypeError: The class is a `unittest.TestCase` too, or overrides a check by something else than a method.
        """
        __tracebackhide__ = True
        super().__init_subclass__(**arguments)
        if issubclass(cls, TestCase):
            raise TypeError(
                f"{cls.__qualname__} is a verification and a unittest.TestCase: as such, none of its checks would run."
                " Leave TestCase out: pytest runs the checks, and so does reactive-runtime tck package.module:name"
            )
        kit = __name__.rpartition(".")[0]
        ours = {name for base in cls.__mro__ if base.__module__.startswith(kit) for name in vars(base)}
        for name in sorted(ours):
            found = [vars(base)[name] for base in cls.__mro__ if name in vars(base)]
            own: Any = found[0]
            if inspect.iscoroutinefunction(own) or inspect.isasyncgenfunction(own):
                raise TypeError(
                    f"{cls.__qualname__}.{name} is an async def, and the kit does not await it: define it with def"
                )
            marked = next((item for item in found if hasattr(item, "check")), None)
            if marked is None or own is None or hasattr(own, "check"):
                continue
            if not inspect.isfunction(own) or inspect.isgeneratorfunction(own):
                raise TypeError(
                    f"{cls.__qualname__}.{name} overrides a check, and is no plain method: a call would judge nothing."
                    " Define it with def, without yield; None leaves the check out"
                )
            function: Any = own
            function.check, function.__test__ = marked.check, True

    def configure(self: V, **settings: Any) -> V:
        """Set attributes by argument, before those of the class.

        Args:
            **settings: The attributes by name; None leaves an attribute as it is.

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
        """All checks, by rule, and for each rule those of the original kit first.

        Returns:
            The checks.
        """
        found = (cast(_Marked, getattr(cls, name)) for name in dir(cls) if hasattr(getattr(cls, name), "check"))
        return sorted((finding.check for finding in found), key=_order)

    def outcomes(self, *, budget: float | None = None) -> Iterator[Outcome]:
        """Run every check, and give each outcome as it comes.

        Args:
            budget: Seconds for all checks: a check that would begin later is "not run". None: no bound.

        Yields:
            The outcome of each check.
        """
        begin = time.monotonic()
        for item in self.checks():
            if budget is not None and time.monotonic() - begin > budget:
                yield Outcome(item, "not run", f"the budget of {budget:g} s was over before this check")
            else:
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
        except ConformanceError as failure:
            return Outcome(item, "failed", str(failure), failure.rule)
        except KeyboardInterrupt:
            raise  # on this thread it comes from the user
        except BaseException as error:
            return Outcome(item, "failed", described(error), item.rule)
        return Outcome(item, "passed", "")

    def pace(self) -> float:
        """Seconds that a signal of the implementation takes; 0 if the kit did not measure it."""
        return 0.0

    def unmeasured(self) -> None:
        """Assume a quick implementation, and measure the pace no more."""

    def seconds(self) -> float:
        """About how long all checks take, if none fails."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        """The facts that the kit has found of the implementation, for the same verification in another process.

        Returns:
            The argument for `recall`.
        """
        return {"_spun": self.spins()}

    def recall(self, facts: dict[str, Any]) -> None:
        """Take over the facts from another process.

        Args:
            facts: The result of `facts` there.
        """
        for name, fact in facts.items():
            setattr(self, name, fact)

    def _plain_run(self, elements: int) -> None:
        """Try what all checks have in common; raises ConformanceError if that is broken."""

    def _hung_factories(self) -> dict[str, str]:
        """The failures of the factories that hung, by name; the kit calls none of these again."""
        if not hasattr(self, "_hung"):
            self._hung = {}
        return self._hung

    def spins(self) -> dict[str, int]:
        """The calls that computed without end so far.

        Returns:
            Their numbers, by the names of the calls.
        """
        if not hasattr(self, "_spun"):
            self._spun = {}
        return self._spun

    def given(self) -> dict[str, Any]:
        """The timeouts by attribute. Runs nothing; raises ValueError if one is no number above 0."""
        given = {name: getattr(self, name) for name in TIMEOUTS}
        Settings.of(given)
        return given

    def settings(self) -> Settings:
        """The timeouts in force.

        Returns:
            The settings.

        Raises:
            ValueError: An attribute or an environment variable is no number above 0.
        """
        given = self.given()
        timed = given["default_timeout"] is not None or VARIABLES["default_timeout"] in os.environ
        return Settings.of(given, pace=0.0 if timed else self.pace())


def check(rule: str, /, *, plain: int = 0) -> Callable[[Callable[[V, TestEnvironment], object]], Callable[[V], None]]:
    """Make a method a check of `rule`. Its name says its kind.

    An optional check that fails counts as skipped, with the reason, unless it saw a MUST broken.

    Args:
        rule: The rule.
        plain: If the check got too few signals, or too many, the kit tries a plain stream: it requests so many
            elements one by one. If that fails too, that is the failure of the check.
    """

    def decorate(body: Callable[[V, TestEnvironment], object]) -> Callable[[V], None]:
        item = _check_of(body.__name__, rule)

        def judge(self: V) -> None:
            env = TestEnvironment(rule, self.settings())
            env.hung, env.spins = self._hung_factories(), self.spins()
            try:
                env.run(lambda: body(self, env))
            except ConformanceError as failure:
                outside(failure)  # a test runner may show it as the context of the next one
                if plain and failure.missing:
                    self._plain_run(plain)
                if item.may_be_left_out and not failure.observed:
                    raise NotVerified(f"optional, and not met: {failure}") from failure
                raise

        @functools.wraps(body)
        def run(self: V) -> None:
            __tracebackhide__ = True
            try:
                return judge(self)
            except Exception as error:
                failed = outside(error)
            raise failed

        del run.__wrapped__  # its signature is its own: a test without fixtures
        marked = cast(_Marked, run)
        marked.check, marked.__test__ = item, True
        return run

    return decorate


class Skipped:
    """A check that the kit of the JVM declares, and that no kit can make: it skips, and says why.

    The attribute gives it its name, and the name its rule: "…spec203…" is about rule 2.3.
    """

    def __init__(self, why: str | Mapping[str, str]) -> None:
        """`why` is the reason, or has the reason by rule."""
        self._why = why

    def __set_name__(self, owner: type, name: str) -> None:
        digits = name.partition("_spec")[2].partition("_")[0]
        rule = f"{digits[0]}.{int(digits[1:])}"
        why = self._why if isinstance(self._why, str) else self._why[rule]

        def skip(self: Verification) -> None:
            raise NotVerified(f"rule {rule}: {why}")

        skip.__name__ = skip.__qualname__ = name
        skip.__doc__ = f"Not tested: {why}."
        marked = cast(_Marked, skip)
        marked.check, marked.__test__ = _check_of(name, rule), True
        setattr(owner, name, skip)


def _check_of(name: str, rule: str) -> Check:
    original = not name.startswith("extra_")
    words = name.removeprefix("extra_")
    kind: Kind = (
        "optional" if words.startswith("optional_") else "untested" if words.startswith("untested_") else "required"
    )
    return Check(name, rule, kind, original)


def _order(item: Check) -> tuple[object, ...]:
    return (*by_number(item.rule), not item.original, item.name)


def by_number(rule: str) -> tuple[str, int]:
    """The key that sorts rules: the chapters of the specification, and behind them those with letters."""
    chapter, _, number = rule.partition(".")
    return chapter, int(number)
