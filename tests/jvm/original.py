"""The original kit, `org.reactivestreams:reactive-streams-tck:1.0.4`: several runs of it at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tck.built_in import HUGE, at_rest

from reactive_runtime import hooks

__all__ = ["AT_ONCE", "Original", "Result", "Run"]

AT_ONCE = 12
"""How many runs are under way at a time. A run waits nearly all of its time, for what must not come."""


class Result(NamedTuple):
    """One test of the original kit."""

    name: str
    status: str
    why: str


@dataclass(frozen=True, eq=False)
class Run:
    """One verification of the original kit, and what it is of. In milliseconds, as the kit has it."""

    name: str
    verification: str
    makers: Mapping[str, Any]
    most: int = HUGE
    timeout: int = 2_000
    no_signals: int = 30
    gc: int = 500
    about: Any = field(default=None, repr=False)
    """What the test knows of it besides."""


class Maker:
    """What the Java side asks for the things under test."""

    def __init__(self, jvm: Any, run: Run) -> None:
        self._jvm = jvm
        self._makers = run.makers
        self._settings = {
            "timeout": run.timeout,
            "no_signals": run.no_signals,
            "gc": run.gc,
            "max_elements": run.most,
            "max_subscribers": 1,
        }

    def make(self, what: Any, argument: Any) -> Any:
        made = self._makers[str(what)](*([] if argument is None else [int(argument)]))
        return None if made is None else self._jvm.to_java(made)

    def setting(self, name: Any) -> int:
        return self._settings[str(name)]


class Original:
    """The results of the runs; they are all made, several at once, before the first result is given."""

    def __init__(self, jvm: Any, runs: Iterable[Run]) -> None:
        # Together, and to their end: while they run, no test listens to what is dropped.
        longest_first = sorted(dict.fromkeys(runs), key=lambda run: run.verification != "PythonProcessorTest")
        with hooks.captured():
            self._most = _results(jvm, longest_first, AT_ONCE, collecting=False)
            # One after the other: half a second after a cancel a test calls System.gc(), and then gives the JVM 100 ms
            # to enqueue a reference; too little, where other runs take the time, or collect garbage as well.
            self._collecting = _results(jvm, longest_first, 1, collecting=True)

    def results(self, run: Run) -> list[Result]:
        """Each test of a run."""
        return [*self._most[run].result(), *self._collecting[run].result()]

    def judged(self, run: Run) -> list[Result]:
        """The same; none may have failed."""
        results = self.results(run)
        failed = [result for result in results if result.status == "failed"]
        assert not failed, failed
        return results


def results_of(jvm: Any, run: Run) -> list[Result]:
    """Make one run."""
    return [*_results_of(jvm, run, collecting=False), *_results_of(jvm, run, collecting=True)]


def _results(jvm: Any, runs: list[Run], at_once: int, *, collecting: bool) -> dict[Run, Future[list[Result]]]:
    with ThreadPoolExecutor(at_once, "original-kit") as pool:
        results = {run: pool.submit(_results_of, jvm, run, collecting=collecting) for run in runs}
    at_rest()
    return results


def _results_of(jvm: Any, run: Run, *, collecting: bool) -> list[Result]:
    import jpype

    verification = jpype.JClass(f"reactive_runtime.{run.verification}").class_
    maker = jpype.JProxy("reactive_runtime.Maker", inst=Maker(jvm, run))
    lines = jpype.JClass("reactive_runtime.Kit").run(verification, maker, collecting)
    results = [Result(*map(str, line)) for line in lines]
    assert results or collecting, "the original kit ran nothing"
    return results
