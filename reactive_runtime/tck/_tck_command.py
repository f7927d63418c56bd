"""What the command runs: a name from the shell becomes a verification, whose checks run in a process of their own.

Code under test may end its process, hang in C, or leave threads behind that never end. So the parent only listens: the
child says which check it begins, and what became of it. Where it dies, the check that it was in has failed, and a new
child goes on with the next one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from reactive_runtime._spec import Publisher
from reactive_runtime._targets import import_string
from reactive_runtime.errors import TargetError
from reactive_runtime.tck._environment import described
from reactive_runtime.tck._publisher_verification import PublisherVerification
from reactive_runtime.tck._settings import Settings
from reactive_runtime.tck._verification import Check, Outcome, Verification

__all__ = ["Begun", "Target", "judged", "verification_of"]

SILENT = 120.0
"""Seconds beyond what a check may wait, after which a child of which nothing is heard is ended."""

BEAT = 0.5
"""Seconds of one wait for the child. A key that comes right before a wait is not seen until that wait ends."""

INTERRUPTED = """there is nothing to judge
  seen: the code under test interrupted the main thread (_thread.interrupt_main or SIGINT) while this check ran"""


@dataclass(frozen=True)
class Target:
    """What is to be judged: names, as the shell gives them, and settings."""

    name: str
    failed: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Begun:
    """What is known before the first check."""

    pace: float
    """Seconds that the slowest of the first signals took."""

    seconds: float
    """About how long the checks will take."""


def judged(target: Target) -> Iterator[Begun | Outcome]:
    """What is known before the first check, and then the outcome of each, from a process of its own.

    Raises TargetError where nothing can be judged: the name leads nowhere, or importing it ended the process.
    """
    begin: tuple[int, bool] | None = (0, True)
    while begin is not None:
        begin = yield from _heard(target, *begin)


def _heard(target: Target, first: int, measures: bool) -> Any:
    """What one child says, from check `first` on; returns how to go on, in another child, where there is more.

    That is the next check, and whether the pace is measured before it.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(theirs, target, first, measures), name="tck")
    child.start()
    theirs.close()
    check: Any = None  # the one that it is in
    number, patience = first - 1, SILENT
    measuring = False
    try:
        while True:
            try:
                _wait_for(ours.poll, patience)
                kind, said = ours.recv()
            except (EOFError, OSError):
                ended = _ended(child)
                if measuring:
                    return first, False  # the checks will meet it too, and name a rule
                if check is None and first:
                    return None  # the check that ended the child before has failed: that is a verdict
                if check is None:
                    raise TargetError(f"{target.name}: {ended} before the first check") from None
                why = f"rule {check.rule}\n  seen: {ended} inside of this check"
                yield Outcome(check, "failed", why, check.rule)
                return number + 1, measures
            if kind == "unable":
                if first:
                    return None  # as above
                raise TargetError(said)
            measuring = kind == "measures"
            if kind == "begun":
                patience = SILENT + said[1]
                if not first:
                    yield said[0]
            elif kind == "check":
                number, check = said
            elif kind == "outcome":
                yield said
            elif kind != "measures":
                return None
    finally:
        with contextlib.suppress(Exception):
            child.kill()
            child.join()
        ours.close()


def _wait_for(poll: Callable[[float], bool], patience: float) -> None:
    """Return when there is something to receive; EOFError after `patience` seconds without."""
    deadline = time.monotonic() + patience
    while not poll(BEAT):
        if time.monotonic() >= deadline:
            raise EOFError


def _ended(child: Any) -> str:
    """How a child of which nothing more is heard has ended, or is ended now."""
    child.join(1.0)
    if child.is_alive():
        child.kill()
        child.join()
        return "the process gave no sign of life any more"
    status = child.exitcode
    return f"the process was ended by signal {-status}" if status < 0 else f"the process was ended (status {status})"


class _Interrupts:
    """What SIGINT does in the child: it ends the check that runs, once, and nothing else.

    A key pressed at the terminal reaches the parent too, which ends the child; `_thread.interrupt_main` does not.
    Owned by the main thread of the child, on which Python runs its handlers.
    """

    def __init__(self) -> None:
        self._inside = self._seen = False
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        if self._inside:
            self._inside, self._seen = False, True
            raise KeyboardInterrupt

    def outcome(self, verification: Verification, check: Check) -> Outcome:
        """What becomes of this check: where it is interrupted, there is nothing to judge.

        That holds also where the interrupt was lost (in a finalizer, or in the callback of a weak reference), or became
        another error: in the middle of `Condition.wait`, "release unlocked lock".
        """
        outcome = Outcome(check, "failed", INTERRUPTED)  # of no rule: none forbids it
        self._seen = False
        with contextlib.suppress(KeyboardInterrupt):
            try:
                self._inside = True
                found = verification.outcome(check)
            finally:
                self._inside = False
            if not self._seen:
                outcome = found
        return outcome


def _run(parent: Connection, target: Target, first: int, measures: bool) -> None:
    """The child: run each check, and say what became of it; end without waiting for threads that are left."""
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # what the code under test prints is no part of the verdict
    try:
        interrupts = _Interrupts()
        verification = verification_of(target.name, failed=target.failed, **target.settings)
        if measures:
            parent.send(("measures", None))
        else:
            verification.unmeasured()
        settings = verification.settings()
        begun = Begun(verification.pace(), verification.seconds())
        parent.send(("begun", (begun, _most(settings) + 3 * begun.seconds)))
        for number, check in enumerate(verification.checks()):
            if number >= first:
                parent.send(("check", (number, check)))
                parent.send(("outcome", interrupts.outcome(verification, check)))
        parent.send(("end", None))
    except TargetError as error:
        parent.send(("unable", str(error)))
    except BaseException as error:  # of what the verification defines besides its checks
        parent.send(("unable", f"{target.name}: {described(error)}"))
    finally:
        parent.close()
        os._exit(0)


def _most(settings: Settings) -> float:
    return 20 * (settings.default_timeout + settings.call_timeout + settings.default_no_signals_timeout)


def verification_of(target: str, *, failed: str | None = None, **settings: Any) -> Verification:
    """The verification that `target`, "package.module:name", stands for.

    The name is a subclass of one of the verifications, or a function of the number of elements that returns a
    publisher; `failed` names a function without arguments that returns a publisher which fails. Of the `settings`
    those count that are not None. Raises TargetError.
    """
    item = import_string(target)
    if isinstance(item, type) and issubclass(item, Verification):
        verification: Verification = _made(target, item)
    elif callable(item):
        verification = _Made(item, None if failed is None else import_string(failed))
    else:
        raise TargetError(
            f"{target}: a function of the number of elements, or a verification, not {type(item).__name__}"
        )
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        verification.configure(**given).given()  # a bad number is reported before anything runs
    except (TypeError, ValueError) as error:
        raise TargetError(f"{target}: {error}") from error
    return verification


def _made(target: str, kind: Callable[[], Verification]) -> Verification:
    try:
        return kind()
    except Exception as error:
        raise TargetError(f"{target}: making one raised {type(error).__name__}: {error}") from error


class _Made(PublisherVerification[Any]):
    """Publishers made by a function."""

    def __init__(self, create: Callable[[int], Any], failed: Callable[[], Any] | None) -> None:
        self._create = create
        self._failed = failed

    def create_publisher(self, elements: int) -> Publisher[Any]:
        publisher: Publisher[Any] = self._create(elements)
        return publisher

    def create_failed_publisher(self) -> Publisher[Any] | None:
        return None if self._failed is None else self._failed()
