"""Is a publisher conformant? The 38 checks of the original kit, under their names, and those of our own.

A check says what it does in the order it does it, and judges its own rule; what else is wrong on the way fails it
too, with the rule that it broke.
"""

from __future__ import annotations

from typing import TypeVar

from reactive_runtime.tck._publisher.publisher_extra import ExtraPublisherChecks
from reactive_runtime.tck._publisher.publisher_original import OriginalPublisherChecks
from reactive_runtime.tck._publisher.publisher_states import StatePublisherChecks
from reactive_runtime.tck._publisher.publisher_values import ValuePublisherChecks

__all__ = ["PublisherVerification"]

T = TypeVar("T")


class PublisherVerification(
    OriginalPublisherChecks[T], ExtraPublisherChecks[T], StatePublisherChecks[T], ValuePublisherChecks[T]
):
    """Checks of a publisher. Subclass it in a test module, name the subclass `Test…`, and say how to make one.

    `create_publisher(elements)` has to be defined; `create_failed_publisher()` and
    `create_publisher_failing_after(elements)` may be. The attributes are settings.
    """
