"""The base of the verification of an adapter: its settings, and the decorator of its checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from reactive_runtime.tck._adapters.description import Adapter
from reactive_runtime.tck._adapters.trial import Limits, Trial, bounded
from reactive_runtime.tck._running.failures import NotVerified, outside
from reactive_runtime.tck._verification import Check, Verification

__all__ = ["AdapterChecks", "adapter_check"]

V = TypeVar("V", bound="AdapterChecks")

PATIENCE = 30.0
QUIET = 0.2


class AdapterChecks(Verification):
    """The settings of the checks."""

    cancel_within: float = 0.1
    """Seconds that `cancel` may take; the shortest of `tries` counts."""

    tries: int = 5
    """How often the kit measures `cancel`, at most."""

    backlog: int = 10_000
    """How many messages the check of memory handles: up to ten million."""

    growth: int = 256 * 1024
    """Bytes by which the memory may grow from the first tenth of the backlog to the last."""

    def create_adapter(self) -> Adapter:
        """Describe the adapter under test, for one check.

        Returns:
            A new description, with a queue of its own.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define create_adapter(self)")

    def limits(self) -> Limits:
        """How long the checks wait: `default_timeout` (30 s) and `default_no_signals_timeout` (0.2 s).

        Returns:
            The limits.
        """
        patience, quiet = self.default_timeout, self.default_no_signals_timeout
        return Limits(
            patience=PATIENCE if patience is None else patience,
            quiet=QUIET if quiet is None else quiet,
            cancel_within=self.cancel_within,
            tries=self.tries,
            backlog=self.backlog,
            growth=self.growth,
        )


NO_ACKNOWLEDGEMENT = "the source has no acknowledgement: its server does not hear which messages are handled"


def adapter_check(
    rule: str, *, of_acknowledgement: bool = False
) -> Callable[[Callable[[Any, Trial], object]], Callable[[V], None]]:
    """Make a method a check of `rule`; `of_acknowledgement`: of none without."""

    def decorate(body: Callable[[Any, Trial], object]) -> Callable[[V], None]:
        def judge(self: V) -> None:
            limits, adapter = self.limits(), self.create_adapter()
            if of_acknowledgement and not adapter.acknowledges:
                adapter.close()
                raise NotVerified(NO_ACKNOWLEDGEMENT)
            trial = Trial(rule, adapter, limits)
            try:
                bounded(lambda: body(self, trial), 20 * limits.patience + limits.backlog / 500, trial.fail)
            finally:
                trial.close()
                adapter.close()

        @functools.wraps(body)
        def run(self: V) -> None:
            __tracebackhide__ = True
            try:
                return judge(self)
            except Exception as error:
                failed = outside(error)
            raise failed

        del run.__wrapped__  # its signature is its own: a test without fixtures
        marked = cast(Any, run)
        marked.check, marked.__test__ = Check(body.__name__, rule, "required", original=False), True
        return cast(Callable[[V], None], run)

    return decorate
