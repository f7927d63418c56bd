"""`TaskMetrics`: what the tasks of `map_flow` did, also those that were cut short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.public_names import at_home
from reactive_runtime.spark._tasks.link import Address, Linked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_runtime.spark._tasks.coordinator import Peer

__all__ = ["TaskMetrics"]

_WHAT: Final = "TaskMetrics"


class TaskMetrics:
    """Counts of the rows, retries and errors of all tasks of `map_flow`. Read them in the driver, after an action.

    A task reports before each batch that it sends, and at its end, and waits until the driver has it. So a task that a
    limit cuts short is counted too, up to the last batch that Spark has taken; what it did beyond that comes a little
    later, as it ends. (Accumulators of Spark have nothing of such a task.) What is done twice, by a task that Spark ran
    again, is counted twice.

    Args:
        spark: The session.
        port: Where the driver listens; its tasks connect to `spark.driver.host` there. 0: any that is free.

    Raises:
        RuntimeError: The session is one of Spark Connect, whose tasks can't reach this process.
        SparkError: The driver can't listen there.
    """

    def __init__(self, spark: SparkSession, *, port: int = 0) -> None:
        from reactive_runtime.spark._tasks.coordinator import address_of  # what only the driver needs

        self._counts = _Counts()
        self._link = Linked(_WHAT, address_of(_WHAT, spark, self._counts, port))

    @property
    def taken(self) -> int:
        """Rows that flows took."""
        return self._counts.of("taken")

    @property
    def given(self) -> int:
        """Rows that flows gave."""
        return self._counts.of("given")

    @property
    def retries(self) -> int:
        """Attempts of `retry` and its like, after the first."""
        return self._counts.of("retries")

    @property
    def failed(self) -> int:
        """Rows that became an error in the column of errors."""
        return self._counts.of("failed")

    @property
    def in_flight(self) -> int:
        """The most calls that were in flight on `Threads`, in any one task."""
        return self._counts.of("in_flight")

    def add(self, *, taken: int = 0, given: int = 0, retries: int = 0, failed: int = 0, in_flight: int = 0) -> None:
        """Add what a task did, and wait until the driver has it. `map_flow` calls it, in the task.

        Args:
            taken: Rows that its flow took, since the last report.
            given: Rows that its flow gave.
            retries: Attempts of `retry` and its like, after the first.
            failed: Rows that became an error in the column of errors.
            in_flight: The most calls that were in flight on `Threads`.

        Raises:
            SparkError: The driver can't be reached, or is gone.
        """
        self._link.linked().count(taken=taken, given=given, retries=retries, failed=failed, in_flight=in_flight)

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._link.address,)


def _arrived(address: Address) -> TaskMetrics:
    """The same, in a task."""
    made = TaskMetrics.__new__(TaskMetrics)
    made._counts = _Counts()  # what is read is in the driver
    made._link = Linked(_WHAT, address)
    return made


class _Counts:
    """The sums, in the driver."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._sums: dict[str, int] = {}  # _lock

    def of(self, name: str) -> int:
        with self._lock:
            return self._sums.get(name, 0)

    def heard(self, peer: Peer, said: dict[str, Any]) -> None:
        number = said.pop("count")
        with self._lock:
            for name, count in said.items():
                before = self._sums.get(name, 0)
                self._sums[name] = max(before, count) if name == "in_flight" else before + count
        peer.say(answered=number)

    def lost(self, peer: Peer) -> None:
        """The counts that it has reported stay."""


at_home("reactive_runtime.spark", TaskMetrics)
