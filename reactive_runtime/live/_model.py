"""The result of a look at the live flows: dataclasses, with their text and their JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

__all__ = ["IDLE", "MOVES", "Cause", "FlowState", "Snapshot", "Stage", "shown_demand"]

MOVES: Final = "moving"
"""The kind where the part that is waited for moves."""

IDLE: Final = frozenset({"timer", "push"})
"""Kinds of causes that a flow asks for itself: they are no stall."""

RACY: Final = "read without a lock: a field may be a moment older than the one beside it"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a flow does not move.

    Args:
        kind: One of `demand`, `function`, `lock`, `pool`, `nested`, `executor`, `cancel`, `valve`, `key`, `queue`,
            `loop`, `coroutine`, `upstream`, `timer`, `push`, `unknown`.
        text: The cause in words: it names the part that waits, and the part, lock, pool or thread that it waits for.
        seconds: How many seconds nothing has moved; it counts from the first look at the flow.
    """

    kind: str
    text: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.text} (for {self.seconds:.1f} s)"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of a flow that one drain works on, or one upstream of an operator.

    Args:
        depth: How many stages are between this one and the subscriber.
        operators: The source and the operators, in the notation of `explain`.
        runs_on: The executor, or `caller`.
        thread: The thread that runs the stage at this moment; None: no thread does.
        demand: How many elements were requested and not delivered; None: the stage passes demand on.
        queued: How many elements wait in its queue; None: it has no queue.
        elements: How many elements its source has delivered; None: the source does not count them.
        seconds: How many seconds it has been still; it counts from the first look at it.
    """

    depth: int
    operators: str
    runs_on: str
    thread: str | None
    demand: int | None
    queued: int | None
    elements: int | None
    seconds: float

    def __str__(self) -> str:
        facts = [
            f"on {self.runs_on}" + (f": {self.thread}" if self.thread else ""),
            "" if self.demand is None else f"demand {shown_demand(self.demand)}",
            "" if self.queued is None else f"queued {self.queued:,}",
            "" if self.elements is None else f"elements {self.elements:,}",
            f"quiet {self.seconds:.1f} s" if self.seconds else "moving",
        ]
        return f"{'  ' * self.depth}{self.operators}  [{', '.join(filter(None, facts))}]"


@dataclass(frozen=True, slots=True)
class FlowState:
    """One live subscription, from the subscriber up to the sources.

    Args:
        id: The name of this subscription in its process, while it lives.
        subscriber: The kind of the subscriber.
        state: `moving`, `idle` (it waits for a timer, or for a program that pushes) or `stalled`.
        cause: Why it is stalled or idle; None: it moves.
        stages: Its parts, from the subscriber up; a stage waits for the stages after it in the list whose `depth` is
            one more.
        elements: How many elements its sources have delivered; None: no source counts.
        rate: Elements per second between the last two looks; None: there was no earlier look, or no count.
    """

    id: str
    subscriber: str
    state: str
    cause: Cause | None
    stages: tuple[Stage, ...]
    elements: int | None
    rate: float | None

    @property
    def name(self) -> str:
        """Its stages in one line, the source first."""
        return " | ".join(stage.operators for stage in reversed(self.stages[:4]))

    def __str__(self) -> str:
        rate = "" if self.rate is None else f", {self.rate:,.0f} elements/s"
        lines = [f"{self.state.upper():<8} flow {self.id} to {self.subscriber}{rate}"]
        if self.cause is not None:
            lines.append(f"  because: {self.cause}")
        lines.extend(f"    {stage}" for stage in self.stages)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The live flows of a process at one moment.

    Args:
        pid: The process.
        flows: Its live flows; those that are stalled come first.
        complete: True: `flows` has all live flows. False: there are more than `MOST`, and `flows` leaves out the rest.
        note: How exact the fields are.
    """

    pid: int
    flows: tuple[FlowState, ...]
    complete: bool = True
    note: str = RACY

    @property
    def stalled(self) -> tuple[FlowState, ...]:
        """The flows that do not move, and are not idle."""
        return tuple(flow for flow in self.flows if flow.state == "stalled")

    def to_json(self) -> str:
        """All of it as one JSON object.

        Returns:
            The fields of the dataclasses by their names.
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        """The snapshot that `to_json` was called on.

        Args:
            text: The JSON.

        Returns:
            An equal snapshot.

        Raises:
            ValueError: The JSON is not from `to_json`.
        """
        try:
            fields = json.loads(text)
            return cls(**{**fields, "flows": tuple(map(_flow, fields["flows"]))})
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no snapshot of flows: {error}") from error

    def __str__(self) -> str:
        count = f"{len(self.flows)} live flow{'s' * (len(self.flows) != 1)}, {len(self.stalled)} stalled"
        more = "" if self.complete else ", more were left out"
        return "\n".join([f"process {self.pid}: {count}{more} ({self.note})", *map(str, self.flows)])


def _flow(fields: dict[str, Any]) -> FlowState:
    cause = None if fields["cause"] is None else Cause(**fields["cause"])
    return FlowState(**{**fields, "cause": cause, "stages": tuple(Stage(**stage) for stage in fields["stages"])})


def shown_demand(n: int) -> str:
    """A demand, as text."""
    return "unbounded" if n >= 2**63 - 1 else f"{n:,}"
