"""The kit for adapters: does a source of messages carry demand to its server, and lose no message?

    from reactive_runtime.tck.adapters import Adapter, AdapterVerification

    class TestMine(AdapterVerification):
        def create_adapter(self) -> Adapter: ...

pytest collects the checks, `reactive-runtime tck package.module:TestMine` prints them, and `table` puts several
adapters side by side. The kit counts at the server, in real time, and with processes that it kills.
"""

from __future__ import annotations

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.tck._adapters.checks_of_losses import ChecksOfLosses
from reactive_runtime.tck._adapters.checks_of_messages import ChecksOfMessages
from reactive_runtime.tck._adapters.description import POISON, Adapter
from reactive_runtime.tck._adapters.table import Result, table

__all__ = ["POISON", "Adapter", "AdapterVerification", "Result", "judge", "table"]


class AdapterVerification(ChecksOfMessages, ChecksOfLosses):
    """The checks of an adapter: subclass it, and define `create_adapter`."""


def judge(verification: AdapterVerification) -> Result:
    """Run every check.

    Args:
        verification: The verification of one adapter.

    Returns:
        The outcomes of all checks.
    """
    adapter = verification.create_adapter()
    name = adapter.name
    adapter.close()
    return Result(name, list(verification.outcomes()))


_all_at_home(globals())
