"""Exchanges the code of functions for rewritten code, for the time of an exploration."""

from __future__ import annotations

import builtins
import contextlib
import functools
import linecache
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import reactive_runtime
from reactive_runtime._core.runtime import primitives
from reactive_runtime.explore._instrument.expressions import hook_name
from reactive_runtime.explore._instrument.operations import (
    IDENTITIES,
    IN_PLACE,
    OPERATIONS,
    Augmented,
    Compared,
    Target,
    Valued,
)
from reactive_runtime.explore._instrument.rewriting import ASSERTIONS, compiled, compiled_with_a_stop, plain_codes
from reactive_runtime.explore._instrument.sites import SITES, Site
from reactive_runtime.explore._shared_state.kinds import (
    CACHE,
    home_of,
    is_generated,
    is_heap,
    module_names,
    module_of,
    mro,
    names_of,
)

__all__ = [
    "CodePatcher",
    "assertions_explained",
    "codes_in",
    "functions_in",
    "sites_of",
    "source_of",
    "stopping_before",
    "stored_in",
]


def _store(value: Any, item: Any, name: str, site: int) -> None:
    setattr(item, name, value)


def _set_item(value: Any, item: Any, key: Any, site: int) -> None:
    item[key] = value


def _delete_item(item: Any, key: Any, site: int) -> None:
    del item[key]


def _operated(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int, int], Any]:
    return lambda one, other, at_one, at_other: operator(one, other)


class _Entry:
    """The object that functions notify when they begin."""

    __slots__ = ("entered",)


PLAIN: Final[dict[str, Any]] = {
    "entry": _Entry(),
    "begun": lambda: None,
    "load": lambda item, name, site: getattr(item, name),
    "call": lambda item, name, site: getattr(item, name),
    "take": lambda item, name, site: getattr(item, name),
    "use": lambda item, name, site: getattr(item, name),
    "function": lambda called, site: called,
    "look": lambda value, site: value,
    "filled": lambda value, name, owner, line, site: value,
    "resumed": lambda value, site: value,
    "changing": lambda value, target, site, operand: value,
    "each": lambda entries, site: entries,
    "delegated": lambda entries, site: entries,
    "mapped": lambda entry: entry,
    "unseen": lambda entry, site: entry,
    "inherited": lambda entry, name, site: getattr(entry, name),
    "matched": lambda value, names, classes, site: value,
    "valued": Valued,
    "compared": Compared,
    "target": Target,
    "augmented": Augmented,
    **IDENTITIES,
    "binding": lambda key, site: lambda item: item,
    "imported": lambda module, package, names, site: None,
    "store": _store,
    "store_mapping": _store,
    "store_name": lambda value, key, _, site: None,
    "delete": lambda item, name, site: delattr(item, name),
    "item": lambda item, key, site: item[key],
    "set_item": _set_item,
    "delete_item": _delete_item,
    "at": lambda key, site, writes: None,
    "named": lambda name, key, site: None,
    "turn": lambda site: None,
    "undisturbed": contextlib.nullcontext,
    "first": lambda one, other: one,
    "second": lambda one, other: other,
    **IN_PLACE,
    **{f"{name}_at": _operated(operator) for name, operator in IN_PLACE.items()},
    **{f"{name}_of": _operated(operator) for name, operator in OPERATIONS.items()},
}
"""What accesses do when nothing is explored: the calls of rewritten code, outside of an exploration."""


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The codes of the functions in `code`, however deep."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


def _key(code: CodeType) -> tuple[Any, ...]:
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_qualname, code.co_firstlineno, arguments, tuple(sorted(code.co_freevars))


@dataclass(slots=True)
class _File:
    """One file, rewritten. Written by the one exploration that runs."""

    lines: list[str]
    """The very list that `linecache` has: another one is another source, as a rule."""
    table: dict[tuple[Any, ...], CodeType | None]
    """The code of each function; None where two can't be distinguished."""
    sites: range
    stored: frozenset[str]
    """The attributes that are stored outside of `__init__`."""
    explained: bool
    """Whether pytest has rewritten its assertions."""
    plain: dict[tuple[Any, ...], list[CodeType]] = field(default_factory=dict)
    """The code of each function as it would be loaded now; empty until it is asked for."""
    codes: dict[int, tuple[CodeType, CodeType | None]] = field(default_factory=dict)
    """What stands for a code of the file, by its identity: both."""

    def code_for(self, code: CodeType) -> CodeType | None:
        """The rewritten code of a function of this file; None where it has none, or is not what stands there."""
        known = self.codes.get(id(code))
        if known is None:
            new = self.table.get(_key(code))
            fits = new is not None and new.co_freevars == code.co_freevars and self.has(code)
            known = self.codes[id(code)] = (code, new if fits else None)
        return known[1]

    def has(self, code: CodeType) -> bool:
        """Whether a function's code is that of the file as it is now: it may have been edited since it was loaded."""
        if code.co_filename.startswith(_OWN):
            return True
        if not self.plain:
            for one in plain_codes("".join(self.lines), code.co_filename, self.explained):
                for inner in codes_in(one):
                    self.plain.setdefault(_key(inner), []).append(inner)
        return code in self.plain.get(_key(code), ())


_OWN: Final = os.path.dirname(reactive_runtime.__file__)

_files: dict[tuple[str, bool], _File] = {}
"""Rewritten once in a process, and once more with assertions of pytest; written by the one exploration that runs."""

_asserting: list[bool] = []
"""Not empty while a marked test is explored, of which a process has one at a time."""


@contextlib.contextmanager
def assertions_explained() -> Iterator[None]:
    """While the block runs, `assert` says what it says in pytest, in modules that pytest has rewritten.

    Sites have other numbers then: a token that was made in such a block is replayed in one.
    """
    _asserting.append(True)
    try:
        yield
    finally:
        _asserting.pop()


def _file(filename: str, function: FunctionType) -> _File:
    """SyntaxError where its source can't be read; OSError where there is none."""
    lines = linecache.getlines(filename)
    explained = ASSERTIONS in function.__globals__
    asserting = bool(_asserting) and explained
    known = _files.get((filename, asserting))
    if known is not None and (known.lines is lines or known.lines == lines):
        known.lines = lines
        return known
    first = len(SITES)
    table: dict[tuple[Any, ...], CodeType | None] = {}
    for code in codes_in(compiled(source_of(filename), filename, asserting=asserting)):
        key = _key(code)
        table[key] = None if key in table else code
    sites = range(first, len(SITES))
    stored = frozenset(SITES[site].stores for site in sites if not SITES[site].building) - {""}
    _files[filename, asserting] = known = _File(lines, table, sites, stored, explained)
    return known


def stored_in(filename: str) -> frozenset[str]:
    """The attributes that a rewritten file stores outside of `__init__`, those of one with assertions explained too."""
    return frozenset().union(
        *(known.stored for asserting in (False, True) if (known := _files.get((filename, asserting))))
    )


@contextlib.contextmanager
def stopping_before(
    functions: Iterable[FunctionType], where: tuple[str, int], asked: Callable[[], bool], *, rewritten: bool
) -> Iterator[None]:
    """While the block runs, those of the functions that stand in a file ask before a line whether to stop there."""
    filename, line = where
    there = [function for function in functions if function.__code__.co_filename == filename]
    before = [(function, function.__code__) for function in there]
    setattr(builtins, hook_name("breach"), asked)
    setattr(builtins, hook_name("breakpoint"), breakpoint)
    try:
        if there:
            asserting = (filename, True) in _files and bool(_asserting)
            first = sites_of(filename).start if rewritten else None
            code = compiled_with_a_stop(source_of(filename), filename, line, asserting=asserting, first=first)
            table = {_key(item): item for item in codes_in(code)}
            for function, now in before:
                new = table.get(_key(now))
                if new is not None and new.co_freevars == now.co_freevars:
                    function.__code__ = new
        yield
    finally:
        for function, code in before:
            function.__code__ = code
        setattr(builtins, hook_name("breach"), lambda: False)


def source_of(filename: str) -> str:
    """The source of a file, of a cell of a notebook, of an example; OSError where there is none."""
    source = "".join(linecache.getlines(filename))
    if not source:
        raise OSError(f"{filename} has no source")
    return source


def sites_of(filename: str) -> range:
    """The numbers of the sites of a rewritten file."""
    known = _files.get((filename, bool(_asserting))) or _files.get((filename, False))
    return range(0) if known is None else known.sites


# More complex than other functions: a branch for each kind of object that leads to functions.
def functions_in(  # noqa: C901
    roots: Iterable[Any], modules: frozenset[str], owners: list[Any] | None = None
) -> list[FunctionType]:
    """The functions of those modules that can be reached from them, from classes, functions and their closures.

    Without those that were generated, as the methods of dataclasses are. Of what outlives a run, all that holds values
    by name on the way there is added to `owners`: modules, classes, properties, functions and cells.
    """
    found: list[FunctionType] = []
    owners = [] if owners is None else owners
    seen: set[int] = set()
    nowhere: set[int] = set()  # kinds that lead to no function: most of what modules and classes hold
    stack = list(roots)
    while stack:
        item = stack.pop()
        kind = type(item)  # and not what it says itself: a class of the program may compute that
        if id(kind) in nowhere or id(item) in seen:
            continue
        seen.add(id(item))
        if kind is FunctionType:
            if _is_within(home_of(item), modules) and not is_generated(item):
                found.append(item)
            if item.__closure__ is not None:
                cells = [cell for cell in item.__closure__ if _filled(cell)]
                owners.extend(cells)
                stack.extend(cell.cell_contents for cell in cells)
            if item.__dict__:
                stack.extend(item.__dict__.values())
            if item.__defaults__ is not None:
                owners.append(item)
                stack.extend(item.__defaults__)
            if item.__kwdefaults__ is not None:
                owners.append(item.__kwdefaults__)
                stack.extend(item.__kwdefaults__.values())
        elif issubclass(kind, ModuleType):
            if module_names(item).get("__name__") in modules:
                owners.append(item)
                stack.extend(module_names(item).values())
        elif issubclass(kind, type):
            if is_heap(item) and _is_within(module_of(item), modules):
                owners.append(item)
                stack.extend(names_of(item).values())
                stack.extend(mro(item)[1:-1])
        elif issubclass(kind, staticmethod | classmethod | MethodType):
            stack.append(item.__func__)
        elif issubclass(kind, property):
            stack.extend(one for one in (item.fget, item.fset, item.fdel) if one is not None)
        elif issubclass(kind, functools.partial):
            stack.extend((item.func, *item.args, *item.keywords.values()))
        elif issubclass(kind, functools.cached_property):
            owners.append(item)
            stack.append(item.func)
        elif kind is CACHE:
            stack.append(item.__wrapped__)
        elif issubclass(kind, list):
            stack.extend(list.__getitem__(item, slice(50)))
        elif issubclass(kind, tuple):
            stack.extend(tuple.__getitem__(item, slice(50)))
        elif issubclass(kind, dict):
            stack.extend(list(dict.values(item))[:50])
        else:
            nowhere.add(id(kind))
            stack.append(kind)  # what is made of a class may be all that leads to it
    return found


def _is_within(module: object, modules: frozenset[str]) -> bool:
    """Whether it is one of those, or none: `exec` makes functions and classes that say they are builtins."""
    return module in modules or module is None or module == "builtins"


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


PATIENCE: Final = 1.0
"""Seconds of rewriting after which a line on standard error says so."""

_seconds: Final = primitives.monotonic  # the real one: no stand-in is in place yet


def _say_what_takes_long(files: int) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none
        sys.stderr.write(f"explore: rewriting {files} files to see their accesses; later explorations need not\n")
        sys.stderr.flush()


class CodePatcher:
    """While the block runs, these functions run rewritten code."""

    def __init__(self, functions: Iterable[FunctionType], hooks: dict[str, Any]) -> None:
        self._hooks = {hook_name(name): hook for name, hook in hooks.items()}
        self.hidden: list[FunctionType] = []
        """Functions without a source, or with one that is not theirs."""
        self.changed: set[str] = set()
        """Files that were edited since such functions were loaded."""
        unreadable: set[str] = set()
        self._pairs: list[tuple[FunctionType, CodeType, CodeType]] = []
        self._plain: dict[str, list[CodeType]] = {}
        files: dict[str, _File] = {}
        functions = list(functions)
        says_at = _seconds() + PATIENCE
        for function in functions:
            code = function.__code__
            name = code.co_filename
            if _seconds() >= says_at:
                says_at = math.inf
                _say_what_takes_long(len({function.__code__.co_filename for function in functions}))
            if name not in files and name not in unreadable:
                try:
                    files[name] = _file(name, function)
                    if not files[name].has(code):  # perhaps it was read before it was edited, and then loaded
                        linecache.checkcache(name)
                        files[name] = _file(name, function)
                except (SyntaxError, OSError):
                    unreadable.add(name)
            new = files[name].code_for(code) if name in files else None
            if new is not None:
                self._pairs.append((function, code, new))
            else:
                self.hidden.append(function)
                if name in files and not name.startswith("<") and not files[name].has(code):
                    self.changed.add(name)

    def code_of(self, site: Site) -> CodeType | None:
        """The code, as it was, of the function that the site stands in."""
        if site.filename not in self._plain:
            self._plain[site.filename] = list(
                codes_in(compile(source_of(site.filename), site.filename, "exec", dont_inherit=True))
            )
        found: CodeType | None = None
        for code in self._plain[site.filename]:
            if any(line == site.line for _, _, line in code.co_lines()):
                inner = found is None or code.co_firstlineno >= found.co_firstlineno
                found = code if inner else found
        return found

    def __enter__(self) -> CodePatcher:
        for name, hook in self._hooks.items():
            setattr(builtins, name, hook)
        for function, _, new in self._pairs:
            function.__code__ = new
        return self

    def __exit__(self, *_: object) -> None:
        for pair in self._pairs:
            pair[0].__code__ = pair[1]
        # A generator that was begun in a run, or a function that was made in one, may live on with rewritten code.
        for name, plain in PLAIN.items():
            setattr(builtins, hook_name(name), plain)
