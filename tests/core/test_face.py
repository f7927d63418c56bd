"""What `Flow` is made of: the operators of each theme are methods, the sources static methods."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import os
import pickle
import pkgutil
import re
from types import FunctionType
from typing import Any, get_overloads

import pytest
from core import pipeline_types
from listing import lists_each

import reactive_runtime
from reactive_runtime import Flow, hot
from reactive_runtime._flow import Operators
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.sinks.terminal import TerminalOperators
from reactive_runtime._operators.sinks.whole_files import FileSinks
from reactive_runtime._operators.spark_bridge import SparkOperators
from reactive_runtime.pipeline import Pipeline

PUBLIC = [name for name in dir(Flow) if not name.startswith("_")]
SOURCES = [name for name in PUBLIC if isinstance(inspect.getattr_static(Flow, name), staticmethod)]
METHODS = [name for name in PUBLIC if name not in SOURCES]


def public_modules() -> list[str]:
    """Those that export names, and need nothing but the standard library."""
    found = pkgutil.iter_modules(reactive_runtime.__path__, "reactive_runtime.")
    names = ["reactive_runtime", *(item.name for item in found if not item.ispkg and "._" not in item.name)]
    names += ["reactive_runtime.testing", "reactive_runtime.tck", "reactive_runtime.explore"]
    return [
        name for name in names if not name.endswith("__main__") and hasattr(importlib.import_module(name), "__all__")
    ]


def test_a_source_called_on_a_flow_does_not_take_the_flow_for_an_element() -> None:
    assert list(Flow.range(3).just(1)) == [1]
    assert list(Flow.just("a").range(2)) == [0, 1]


@pytest.mark.parametrize("name", METHODS)
def test_an_operator_is_defined_where_it_is_found(name: str) -> None:
    member = inspect.getattr_static(Flow, name)
    assert isinstance(member, FunctionType)
    owner = next(kind for kind in Flow.__mro__ if name in vars(kind))
    assert member.__module__ == ("reactive_runtime._flow" if owner is Flow else owner.__module__)
    assert member.__qualname__.rpartition(".")[0] == owner.__name__
    assert next(iter(inspect.signature(member).parameters)) == "self"


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_takes_no_flow_that_it_is_called_on(name: str) -> None:
    assert "self" not in inspect.signature(getattr(Flow, name)).parameters


def test_the_parts_of_flow_add_no_public_name_that_is_not_in_a_theme() -> None:
    themes = {kind.__module__ for kind in Flow.__mro__ if kind not in (Flow, Operators, FlowBase)}
    homes = {getattr(Flow, name).__module__ for name in PUBLIC}
    assert homes <= themes | {"reactive_runtime._flow"}


def test_a_pipeline_has_what_makes_a_flow_of_a_flow() -> None:
    sinks = {name for kind in (TerminalOperators, FileSinks, SparkOperators) for name in vars(kind)}
    has = {name for name in PUBLIC if hasattr(Pipeline(), name)}
    assert has == set(METHODS) - sinks - {"explain", "parallel", "partition", "balance"}
    assert has == {name for name in dir(Pipeline()) if not name.startswith("_")} - {"of", "stateful"}


def test_type_checkers_see_in_a_pipeline_what_it_has_with_its_arguments() -> None:
    made = pipeline_types.pipeline_operators()
    if os.environ.get("WRITE_DOCS"):
        pipeline_types.write(made)
    written = pipeline_types.FILE.read_text()
    kind = next(node for node in ast.parse(written).body if isinstance(node, ast.ClassDef))
    declared = {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}
    by = "reactive_runtime/_pipeline_operators.pyi: WRITE_DOCS=1 pytest tests/core/test_face.py writes it"
    lists_each(by, declared, {name for name in PUBLIC if hasattr(Pipeline(), name)})
    same = pipeline_types.meaning(written) == pipeline_types.meaning(made)
    assert same, f"an operator has other arguments, or another first line, than in {by}"


ANYTHING = {
    "do_on_discard": "the elements are those of any operator upstream",
    "from_dataframe": "the columns are known to Spark only",
    "from_stream": "the columns are known to Spark only",
    "to_spark": "a schema in each form that Spark takes, whose types are not installed",
    "Listener.on_next": "one listener for flows of any elements",
    "Metrics.on_next": "as a listener",
}
"""What a type checker can't know of a member of `Flow`, or of a class that is exported beside it."""


def members() -> dict[str, Any]:
    exported = [getattr(reactive_runtime, name) for name in reactive_runtime.__all__]  # imported when asked for
    beside = [item for item in exported if isinstance(item, type) and item is not Flow]
    beside += [getattr(hot, name) for name in hot.__all__]
    found = {name: getattr(Flow, name) for name in PUBLIC}
    for kind in beside:
        own = {f"{kind.__name__}.{name}": getattr(kind, name) for name in vars(kind) if not name.startswith("_")}
        found.update({name: item for name, item in own.items() if isinstance(item, FunctionType)})
    return found


def test_every_argument_and_every_result_has_a_type_or_a_reason() -> None:
    loose = set()
    for name, item in members().items():
        for form in get_overloads(item) or [item]:
            signature = inspect.signature(form)
            types = [p.annotation for p in signature.parameters.values() if p.name != "self"]
            text = " ".join(map(str, [*types, signature.return_annotation])).replace("Coroutine[Any, Any, ", "")
            if re.search(r"\bAny\b", text):
                loose.add(name)
    assert loose == set(ANYTHING)


@pytest.mark.parametrize("module", public_modules())
def test_what_a_public_module_exports_says_that_its_home_is_public(module: str) -> None:
    exported = importlib.import_module(module)
    homes = {name: getattr(getattr(exported, name), "__module__", None) or "" for name in exported.__all__}
    private = {name: home for name, home in homes.items() if home.startswith("reactive_runtime.") and "._" in home}
    assert private == {}


@pytest.mark.parametrize(
    ("given", "source"), [(([1, 2],), "from_iterable"), ((len,), "from_supplier"), ((3,), "just"), ((), "just")]
)
def test_flow_called_names_the_sources(given: tuple[Any, ...], source: str) -> None:
    with pytest.raises(TypeError, match=rf"begins with one of the sources, here perhaps Flow\.{source}\(") as raised:
        Flow(*given)
    assert all(name in str(raised.value) for name in SOURCES)


def test_flow_called_with_a_publisher_names_the_source_for_it() -> None:
    with pytest.raises(TypeError, match=r"^Flow\(Flow\): .* here perhaps Flow\.from_publisher\("):
        Flow(Flow.range(2))  # type: ignore[arg-type]


def test_a_pipeline_of_a_function_has_its_operators() -> None:
    def odd_as_text(numbers: Flow[int]) -> Flow[str]:
        return numbers.filter(lambda n: n % 2).map(str)

    pipeline = Pipeline.of(odd_as_text)
    assert repr(pipeline) == "<Pipeline filter map>"
    assert list(pipeline(Flow.range(4))) == ["1", "3"]


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (3, TypeError, "Pipeline.of: fn must be callable"),
        (lambda flow: 3, TypeError, "Pipeline.of: fn returned 3"),
        (lambda flow: Flow.just(1), TypeError, "Pipeline.of: fn returned <Flow just"),
        (lambda flow: flow.block(), AttributeError, "Pipeline has no 'block': it begins or runs a flow"),
        (
            lambda flow: flow.parallel(2),
            AttributeError,
            "Pipeline has no 'parallel': rails are no flow",
        ),
        (lambda flow: flow.balance(2), AttributeError, "Pipeline has no 'balance': it makes several flows"),
        (
            lambda flow: flow.run_on(None),
            AttributeError,
            r"'run_on': .* in one operator, transform\(lambda",
        ),
        (lambda flow: flow.publish().ref_count(), AttributeError, "'ref_count': what publish and replay make has it"),
        (lambda flow: flow.mapp(str), AttributeError, "Pipeline has no 'mapp', since Flow has no such operator"),
    ],
)
def test_a_pipeline_of_something_else_is_refused(function: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        Pipeline.of(function)


def test_a_pipeline_is_pickled_and_a_flow_copied() -> None:
    pipeline = pickle.loads(pickle.dumps(Pipeline[int, int]().take(2).map(str)))
    assert list(copy.copy(Flow.range(5)).transform(pipeline)) == ["0", "1"]
