"""The public names: those that a user may import, each with one home, and the members of `Flow` by theme.

A public module lies directly in the package and has no underscore, or is one of `DEEPER`; the modules inside of
packages are not public, whatever they are called. Its public names are those of its `__all__`. A name that several
modules export has its home in the first of them; the pages of the others point there. `Flow` inherits
what the classes of `_operators` define: those names are its members, and have their home there.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, Final, get_overloads

import reactive_runtime
from reactive_runtime import Flow
from reactive_runtime.errors import MissingDependencyError

__all__ = ["Member", "Module", "class_members", "members", "modules", "public_names"]

ROOT: Final = "reactive_runtime"


@dataclass(frozen=True)
class Member:
    """A public member of `Flow`."""

    name: str
    theme: str
    """The module that defines it, without the package; "sources" for what begins a flow, "sinks" for what ends one."""
    kind: str
    """"source", "operator" or "sink"."""
    function: Callable[..., Any]

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def signatures(self) -> list[inspect.Signature]:
        """How it is called on a flow, or, a source, on `Flow`: each of its overloads."""
        whole = inspect.signature(self.function)
        forms = [inspect.signature(form) for form in get_overloads(self.function)] or [whole]
        own = 0 if self.kind == "source" else 1  # `self`
        return [
            form.replace(parameters=[_with_default(p, whole) for p in list(form.parameters.values())[own:]])
            for form in forms
        ]


def _with_default(parameter: inspect.Parameter, whole: inspect.Signature) -> inspect.Parameter:
    """The parameter of an overload, whose `...` stands for the default of the function."""
    if parameter.default is ... and parameter.name in whole.parameters:
        return parameter.replace(default=whole.parameters[parameter.name].default)
    return parameter


@dataclass
class Module:
    """A public module, and the names it exports."""

    name: str
    homes: dict[str, Any] = field(default_factory=dict)
    """The names that have their home here."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """The names that it exports from elsewhere, with the path of their module."""

    @property
    def module(self) -> ModuleType:
        """The module itself."""
        return importlib.import_module(self.name)


@cache
def members() -> list[Member]:
    """The public members of `Flow`, in the order of their names."""
    found = []
    for name in sorted(name for name in dir(Flow) if not name.startswith("_")):
        function = getattr(Flow, name)
        begins = isinstance(inspect.getattr_static(Flow, name), staticmethod)
        module = function.__module__.rpartition(".")[2].lstrip("_")
        ends = module in ("whole_files", "terminal", "flow") or name == "to_spark"
        kind = "source" if begins else "sink" if ends else "operator"
        theme = {"source": "sources", "sink": "sinks"}.get(kind, module)
        found.append(Member(name, theme, kind, function))
    return found


@cache
def modules(*, whole: bool = True) -> list[Module]:
    """The public modules, in the order in which their names have their homes.

    Not the `whole`: without those whose dependencies are not installed. A Python without a GIL has no JPype.
    """
    at = {id(member.function): f"{ROOT}.Flow.{member.name}" for member in members()}
    found = []
    for name in _module_names():
        try:
            module = importlib.import_module(name)
        except MissingDependencyError:
            if whole:
                raise
            continue
        entry = Module(name)
        for public in getattr(module, "__all__", ()):
            thing = getattr(module, public)
            if inspect.isclass(thing) and thing is not Flow and issubclass(Flow, thing) and thing.__module__ == name:
                continue  # a part of Flow, whose members are Flow's
            home = at.setdefault(id(thing), f"{name}.{public}")
            if home == f"{name}.{public}":
                entry.homes[public] = thing
            elif not home.startswith(f"{ROOT}.Flow."):
                entry.elsewhere[public] = home
        if entry.homes or (entry.elsewhere and not _is_an_implementation(entry)):
            found.append(entry)
    return found


def public_names() -> list[str]:
    """Every public name, with the path of the module it is imported from; and every public member of `Flow`."""
    names = [f"{ROOT}.Flow.{member.name}" for member in members()]
    for module in modules():
        names += [f"{module.name}.{name}" for name in (*module.homes, *module.elsewhere)]
    return names


def class_members(cls: type) -> list[str]:
    """The public methods and attributes that a class of the package defines itself."""
    return [
        name
        for name, value in vars(cls).items()
        if not name.startswith("_") and isinstance(value, FunctionType | property | staticmethod | classmethod)
    ]


def _is_an_implementation(entry: Module) -> bool:
    """Whether the package itself exports everything that it does."""
    package = {f"{ROOT}.{name}" for name in reactive_runtime.__all__}
    return package.issuperset(entry.elsewhere.values())


def _module_names() -> list[str]:
    """The package first, then what lies directly in it, then the public modules of its packages."""
    found = [item.name for item in pkgutil.walk_packages(reactive_runtime.__path__, f"{ROOT}.")]
    public = [name for name in found if not any(part.startswith("_") for part in name.split("."))]
    return [ROOT, *sorted(public, key=lambda name: name.count("."))]
