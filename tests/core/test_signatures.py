"""How arguments are written: what a method works on by position or by name, its options by name only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import Any

import pytest

from docs._site.names import class_members, modules
from reactive_runtime import Emitter, Flow, KillSwitch, ParallelFlow, Valve
from reactive_runtime._core.runtime.arguments import PREFETCH
from reactive_runtime._flow import ConnectableFlow
from reactive_runtime.explore import Scenario
from reactive_runtime.hot import (
    BehaviorProcessor,
    PublishProcessor,
    ReplayProcessor,
    SubmissionPublisher,
    UnicastProcessor,
)
from reactive_runtime.stress import Workload
from reactive_runtime.testing import StepVerifier, SubscriptionMetadata

HOT = [BehaviorProcessor, PublishProcessor, ReplayProcessor, SubmissionPublisher, UnicastProcessor]
CLASSES = [Flow, ConnectableFlow, ParallelFlow, KillSwitch, Valve, Emitter, *HOT, StepVerifier]
MADE_BY_USERS = [*HOT, KillSwitch, Valve, StepVerifier]

DATA_THAT_MAY_BE_LEFT_OUT = {
    "Flow.all(predicate)",
    "Flow.any(predicate)",
    "Flow.checkpoint(description)",
    "Flow.element_at(default)",
    "Flow.enumerate(start)",
    "Flow.first(default)",
    "Flow.last(default)",
    "Flow.log(name)",
    "Flow.map_parallel(executor)",
    "Flow.reduce(initial)",
    "Flow.repeat(n)",
    "Flow.retry(n)",
    "Flow.single(default)",
    "Flow.subscribe(on_error)",
    "Flow.subscribe(on_complete)",
    "Flow.to_dict(value)",
    "ConnectableFlow.ref_count(n)",
    "KillSwitch.throw(within)",
    "StepVerifier.expect_error(kind)",
    "SubmissionPublisher.offer(timeout)",
}
"""What a method works on, and has a default all the same."""

ELSEWHERE = {
    "reactive_runtime.atomics.AtomicBoolean(value)",
    "reactive_runtime.atomics.AtomicInteger(value)",
    "reactive_runtime.connect.Acked.refuse(error)",
    "reactive_runtime.connect.AckedFlow.map_parallel(executor)",
    "reactive_runtime.connect.files.write_csv(fields)",
    "reactive_runtime.connect.postgres.copy_in(columns)",
    "reactive_runtime.connect.postgres.copy_out(parameters)",
    "reactive_runtime.connect.postgres.rows(parameters)",
    "reactive_runtime.context.ContextFlow.map_parallel(executor)",
    "reactive_runtime.executors.ScheduledExecutor(name)",
    "reactive_runtime.executors.VirtualTimeExecutor(start)",
    "reactive_runtime.executors.VirtualTimeExecutor.advance(seconds)",
    "reactive_runtime.executors.clock_in(context)",
    "reactive_runtime.explore.Driven.subscribe(demand)",
    "reactive_runtime.explore.programs(calls)",
    "reactive_runtime.explore.subscribe(demand)",
    "reactive_runtime.interop.jvm.start(classpath)",
    "reactive_runtime.live.ask(folder)",
    "reactive_runtime.live.dump_on_signal(number)",
    "reactive_runtime.live.open(folder)",
    "reactive_runtime.report.load_year(days)",
    "reactive_runtime.report.write_year(days)",
    "reactive_runtime.scopes.Scope.start(on_next)",
    "reactive_runtime.spark.Found.kept(to)",
    "reactive_runtime.spark.SparkSink.save(path)",
    "reactive_runtime.spark.session(master)",
    "reactive_runtime.spark.session(conf)",
    "reactive_runtime.stress.Context.pool(workers)",
    "reactive_runtime.stress.Context.pool(name)",
    "reactive_runtime.stress.Context.pool_of_this_round(workers)",
    "reactive_runtime.stress.find(names)",
    "reactive_runtime.subscribers.BufferedSubscriber.take(timeout)",
    "reactive_runtime.tck.Settings.of(environment)",
    "reactive_runtime.telemetry.export(meter_provider)",
    "reactive_runtime.testing.Recorder(run)",
    "reactive_runtime.testing.Recorder(sink)",
    "reactive_runtime.testing.Recorder.settle(subscriptions)",
    "reactive_runtime.testing.Recorder.wrap(scenario)",
    "reactive_runtime.testing.trace.TraceWriter(metadata)",
    "reactive_runtime.testing.trace.TraceWriter.close(metadata)",
    "reactive_runtime.testing.trace.different_runs(note)",
}
"""The same, of what is not part of a flow. The argument of `Executor.shutdown` is as Python has it."""

PROTOCOL = {"subscribe", "on_subscribe", "on_next", "on_error", "on_complete", "request", "cancel"}
"""The methods of the specification, whose argument is given by position."""


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public method, under the first class that has it, and what users make by a call."""
    seen: set[object] = set()
    for kind in CLASSES:
        for name in dir(kind):
            found = inspect.getattr_static(kind, name)
            function = found.__func__ if isinstance(found, staticmethod) else found
            if not name.startswith("_") and inspect.isfunction(function) and function not in seen:
                seen.add(function)
                yield f"{kind.__name__}.{name}", function
    for kind in MADE_BY_USERS:
        yield kind.__name__, inspect.getattr_static(kind, "__init__")


METHODS = dict(methods())
PARAMETERS: list[Any] = [
    pytest.param(method, parameter, id=f"{method}({parameter.name})")
    for method, function in METHODS.items()
    for parameter in inspect.signature(function).parameters.values()
    if parameter.name != "self" and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
]


def test_the_catalogue_is_not_empty() -> None:
    assert len(METHODS) > 150
    assert len(PARAMETERS) > 200


@pytest.mark.parametrize(("method", "parameter"), PARAMETERS)
def test_data_by_position_or_by_name_and_options_by_name_only(method: str, parameter: Parameter) -> None:
    name = f"{method}({parameter.name})"
    optional = parameter.default is not Parameter.empty
    if method.rpartition(".")[2] in PROTOCOL and not optional:
        assert parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    elif optional and name not in DATA_THAT_MAY_BE_LEFT_OUT:
        assert parameter.kind is Parameter.KEYWORD_ONLY
    else:
        assert parameter.kind is Parameter.POSITIONAL_OR_KEYWORD


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, method and constructor that is written out, outside of `CLASSES`."""
    for module in modules():
        for name, thing in module.homes.items():
            path = f"{module.name}.{name}"
            if inspect.isfunction(thing):
                yield path, thing
            if not inspect.isclass(thing) or thing in CLASSES:
                continue
            if "__init__" in vars(thing) and not is_dataclass(thing):
                yield path, inspect.getattr_static(thing, "__init__")
            for method in class_members(thing):
                value = vars(thing)[method]
                function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                if inspect.isfunction(function):
                    yield f"{path}.{method}", function


@pytest.mark.jvm
def test_elsewhere_options_are_given_by_name_only_too() -> None:
    found = {
        f"{name}({parameter.name})"
        for name, function in public_callables()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is not Parameter.empty
        and parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        and not name.endswith(".shutdown")
    }
    assert found == ELSEWHERE


@pytest.mark.parametrize(
    ("made", "data"),
    [
        (Scenario, ["setup", "actors", "at_end"]),
        (Workload, ["operations"]),
        (SubscriptionMetadata, ["subscription", "scenario"]),
    ],
)
def test_the_options_of_a_dataclass_that_users_make_are_given_by_name_only(made: Any, data: list[str]) -> None:
    assert [field.name for field in fields(made) if not field.kw_only] == data


@pytest.mark.jvm
def test_elsewhere_data_is_given_by_name_as_well() -> None:
    """But for the methods of a protocol, which others write: of the specification, of executors and of clocks."""
    found = {
        f"{name}({parameter.name})"
        for name, function in public_callables()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is Parameter.POSITIONAL_ONLY and parameter.name != "self"
    }
    protocols = PROTOCOL | {"submit", "schedule"}
    assert {item for item in found if item.partition("(")[0].rpartition(".")[2] not in protocols} == set()


def test_wherever_there_is_a_prefetch_its_default_is_the_same() -> None:
    defaults = [
        parameter.default for _, parameter in (item.values for item in PARAMETERS) if parameter.name == "prefetch"
    ]
    assert len(defaults) > 12
    assert set(defaults) == {PREFETCH}


def test_each_clock_may_be_left_out() -> None:
    defaults = [parameter.default for _, parameter in (item.values for item in PARAMETERS) if parameter.name == "clock"]
    assert len(defaults) > 9
    assert set(defaults) == {None}


def test_each_exception_is_one() -> None:
    optional = {
        f"{method}({parameter.name})"
        for method, parameter in (item.values for item in PARAMETERS)
        if parameter.default is not Parameter.empty
    }
    assert optional >= DATA_THAT_MAY_BE_LEFT_OUT


def test_data_is_given_by_name_as_well() -> None:
    assert list(Flow.range(9).map(fn=str).skip(n=1).take(n=2).batch(n=2)) == [["1", "2"]]
    assert list(Flow.range(5).reduce(fn=lambda a, b: a + b, initial=1)) == [11]
