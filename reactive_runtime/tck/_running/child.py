"""The process in which the command runs the checks: it reports each check that it begins, and the outcome.

One of its threads sends a beat: if none comes, code in C keeps the interpreter, and no thread of Python moves.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from reactive_runtime._spec import Publisher
from reactive_runtime._support.shell_names import import_string
from reactive_runtime.errors import TargetError
from reactive_runtime.rules import RULES
from reactive_runtime.tck._publisher.publisher_verification import PublisherVerification
from reactive_runtime.tck._running import environment as _environment
from reactive_runtime.tck._running.environment import Calls
from reactive_runtime.tck._running.failures import described
from reactive_runtime.tck._running.settings import Settings
from reactive_runtime.tck._verification import Check, Outcome, Verification

__all__ = ["BEAT", "INTERRUPTED", "LOST", "STACKS", "Begun", "LastCalls", "Start", "Target", "run", "verification_of"]

BEAT = 0.25
"""Seconds from one beat of the child to the next."""

STACKS: Any = getattr(signal, "SIGUSR1", None) if hasattr(faulthandler, "register") else None
"""The signal at which a child writes the stacks of its threads; None if the system has none."""

INTERRUPTED = """there is nothing to judge
  seen: the code under test interrupted the main thread (_thread.interrupt_main or SIGINT) while this check ran"""

LOST = 113
"""The exit status of a child after the code under test has closed its pipe."""

FAR = 200
"""The least number of the kit's descriptors: code that closes what it inherited begins at 3."""

ROOM = 256
"""The number of bytes for the name of a call."""


@dataclass(frozen=True)
class Target:
    """The implementation to judge: names, as the shell gives them, and settings."""

    name: str
    failed: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Begun:
    """The times that a child knows before its first check."""

    pace: float
    """Seconds that the slowest of the first signals took."""

    seconds: float
    """About how long the checks will take."""


@dataclass(frozen=True)
class Start:
    """The point at which a child begins."""

    first: int = 0
    """The number of its first check."""

    measures: bool = True
    """Whether it measures the pace; otherwise it assumes a quick implementation."""

    facts: dict[str, Any] | None = None
    """The facts that an earlier child has found of the implementation."""


class LastCalls(Calls):
    """Memory of parent and child: the last call into the implementation, the last of a factory, and the one at hand.

    The thread of the child that calls writes, without a lock; the parent reads when the child has stopped. If two
    threads call at once, the text may be a mixture: then the parent names no rule.
    """

    def __init__(self, context: Any) -> None:
        self._last = context.RawArray("c", ROOM)
        self._factory = context.RawArray("c", ROOM)
        self._at_hand = context.RawArray("c", ROOM)

    def begins(self, text: str, rule: str) -> None:
        """Note a call; `rule` is empty for one of a factory."""
        said = _line(text, rule)
        self._last.value = self._at_hand.value = said
        if not rule:
            self._factory.value = said

    def is_inside(self, text: str, rule: str) -> None:
        """Note the call that is under way when another one has returned."""
        self._at_hand.value = _line(text, rule)

    def last(self) -> tuple[str, str | None]:
        """The last call, and the rule that it breaks if it does not return; none for a factory, None if unknown."""
        return _call(self._last.value)

    def at_hand(self) -> tuple[str, str | None]:
        """The call that has not returned, in the same way; no text where none is under way."""
        return _call(self._at_hand.value)

    def asked(self) -> int:
        """The number of elements of the last call of a factory."""
        number = self._factory.value.decode(errors="replace").rpartition("(")[2].rstrip(")")
        return int(number) if number.isdecimal() else 0


def _line(text: str, rule: str) -> bytes:
    return f"{rule}\n{text}".encode()[: ROOM - 1]


def _call(line: bytes) -> tuple[str, str | None]:
    rule, _, text = line.decode(errors="replace").partition("\n")
    return text, rule if rule in RULES or (text and not rule) else None


class _Interrupts:
    """The handler of SIGINT in the child: it ends the current check, once, and nothing else.

    A key at the terminal reaches the parent too, which ends the child; `_thread.interrupt_main` does not. The main
    thread of the child owns it: Python runs handlers there.
    """

    def __init__(self) -> None:
        self._inside = self._seen = False
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        if self._inside:
            self._inside, self._seen = False, True
            raise KeyboardInterrupt

    def outcome(self, verification: Verification, check: Check) -> Outcome:
        """Run this check. After an interrupt there is nothing to judge.

        That holds also if Python lost the interrupt (in a finalizer, or in the callback of a weak reference), or turned
        it into another error (in the middle of `Condition.wait`, "release unlocked lock").
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


class _Line:
    """The messages of the child to its parent, from two threads; `_lock` owns the pipe."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._pipe = self._file()

    def _file(self) -> tuple[int, int]:
        """The file of the descriptor: the code under test may close it, and open another one under its number."""
        if sys.platform == "win32":
            return 0, 0  # a pipe has no descriptor there
        status = os.fstat(self._parent.fileno())
        return status.st_dev, status.st_ino

    def say(self, kind: str, said: object = None) -> None:
        with self._lock:
            try:
                kept = self._file() == self._pipe
            except OSError:
                kept = False
            if not kept:
                os._exit(LOST)
            self._parent.send((kind, said))

    def beat(self) -> None:
        """Send beats; end the process if the parent has ended."""
        try:
            while True:
                self.say("beat")
                time.sleep(BEAT)
        except OSError:
            end_group(os.getpid())
            os._exit(0)


def end_group(pid: int | None) -> None:
    """End the processes of the session that a child leads: they would keep its pipe open."""
    if pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _far(pipe: Connection) -> Connection:
    """The same pipe under a number that is far from those of the files of the code under test, where there is one."""
    if sys.platform == "win32":
        return pipe
    import fcntl

    try:
        number = fcntl.fcntl(pipe.fileno(), fcntl.F_DUPFD_CLOEXEC, FAR)
    except OSError:  # the process may not have so many
        return pipe
    pipe.close()
    return Connection(number, readable=False)


def run(parent: Connection, stacks: Connection, calls: LastCalls, target: Target, start: Start) -> None:
    """The child: run each check, report its outcome, and end without waiting for threads that are left.

    It leads a session: the parent ends the processes that the code under test leaves behind with it.
    """
    if hasattr(os, "setsid"):
        os.setsid()
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # the verdict goes to 1, and the output of the code under test must not
    parent, stacks = _far(parent), _far(stacks)
    if STACKS is not None:
        faulthandler.register(STACKS, file=stacks.fileno(), all_threads=True)
    line = _Line(parent)
    threading.Thread(target=line.beat, name="tck-beat", daemon=True).start()
    _environment.CALLS = calls
    try:
        _run(line, target, start)
    except TargetError as error:
        line.say("usage", str(error))
    except BaseException as error:  # of a member of the verification that is no check
        line.say("unable", f"{target.name}: {described(error)}")
    finally:
        os._exit(0)


def _run(line: _Line, target: Target, start: Start) -> None:
    interrupts = _Interrupts()
    verification = verification_of(target.name, failed=target.failed, **target.settings)
    if start.facts is not None:
        verification.recall(start.facts)
    elif start.measures:
        line.say("measures")
    else:
        verification.unmeasured()
    settings = verification.settings()
    begun = Begun(verification.pace(), verification.seconds())
    checks = verification.checks()
    longest = _most(settings) + 3 * begun.seconds
    line.say("begun", (begun, checks, longest, settings.call_timeout, verification.facts()))
    spun = 0 if start.facts is None else _spins(verification)
    if _spins(verification) > spun:
        line.say("spun", verification.facts())
        return
    for number, check in enumerate(checks):
        if number >= start.first:
            line.say("check", number)
            line.say("outcome", interrupts.outcome(verification, check))
            if _spins(verification) > spun:
                line.say("spun", verification.facts())
                return
    line.say("end")


def _spins(verification: Verification) -> int:
    """The number of calls that computed without end so far."""
    return sum(verification.spins().values())


def _most(settings: Settings) -> float:
    return 20 * (settings.default_timeout + settings.call_timeout + settings.default_no_signals_timeout)


def verification_of(target: str, *, failed: str | None = None, **settings: Any) -> Verification:
    """The verification for `target`, "package.module:name".

    The name is a subclass of one of the verifications, or a function of the number of elements that returns a
    publisher; `failed` names a function without arguments that returns a publisher which fails. `settings` that are
    None have no effect. Raises TargetError.
    """
    item = import_string(target)
    if isinstance(item, type) and issubclass(item, Verification):
        if failed is not None:
            raise TargetError(
                f"--failed {failed}: {target} is a verification, which has create_failed_publisher for it"
            )
        verification: Verification = _made(target, item)
    elif callable(item):
        verification = _Made(item, None if failed is None else _function(failed))
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


def _function(failed: str) -> Callable[[], Any]:
    item = import_string(failed)
    if not callable(item):
        raise TargetError(f"--failed {failed}: a function without arguments, not {type(item).__name__}")
    found: Callable[[], Any] = item
    return found


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
