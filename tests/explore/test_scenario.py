"""Which modules are looked into: those of the scenario, and what it refers to in the same package."""

from __future__ import annotations

import functools
from typing import Any

from examples.stream_publisher import step_5_errors, step_9_one_drain
from explore.own_code import Counters
from reactive_runtime.explore._checks.scenario import modules_of, scenario_of
from reactive_runtime.explore._schedule.session import Session


def names(*parts: Any) -> set[str]:
    return {module.__name__ for module in modules_of(parts)}


def test_the_modules_of_bases_and_of_what_a_class_refers_to_are_among_them() -> None:
    found = names(step_9_one_drain.StreamPublisher)
    assert {"step_9_one_drain", "step_8_capped", "step_7_get_and_add", "step_6_demand", "step_5_errors"} <= {
        name.rpartition(".")[2] for name in found
    }


def test_functions_are_found_inside_of_partials_methods_and_wrappers() -> None:
    @functools.wraps(step_5_errors.StreamPublisher.subscribe)
    def wrapped() -> None:
        pass

    publisher = step_5_errors.StreamPublisher(lambda: range(3))
    for part in (functools.partial(step_5_errors.StreamPublisher, list), publisher.subscribe, wrapped):
        assert step_5_errors.__name__ in names(part)


def test_a_module_may_be_called_as_a_room_of_the_package_is() -> None:
    with Session(scenario_of(Counters), "shared", (), limit=100, hang=10) as session:
        assert __name__ == "explore.test_scenario"
        assert Counters.__module__ in {module.__name__ for module in session.modules}


def test_other_packages_and_the_standard_library_are_not() -> None:
    found = names(step_9_one_drain.StreamPublisher)
    assert not any(name.startswith(("reactive_runtime", "functools", "typing")) for name in found)
