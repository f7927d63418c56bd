"""What kind of thing an object is to the watcher, by its type: whether a call in C may read it, or change it.

A class whose code is rewritten says itself what it does; a value that can't change needs no look. What is left keeps a
state that no line of the program's own shows: containers, iterators, views of containers, files, and objects of classes
that are not looked into. Told by the type alone, once for each: no code of the program runs for it.

A type without a hash is taken to change, one with a hash of its own to be a value, and one that is compared by identity
to have a state. That holds for the builtins, and for those of C extensions; the exceptions are named here.
"""

from __future__ import annotations

import array
import collections
import contextlib
import copy
import dataclasses
import functools
import gc
import heapq
import inspect
import io
import itertools
import json
import logging
import operator
import os
import pickle
import pprint
import string
import sys
import warnings
import weakref
from collections.abc import Callable, ItemsView, Iterable, KeysView, ValuesView
from types import (
    BuiltinMethodType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any, Final

from reactive_runtime.explore._shared_state.outer_state import USES

__all__ = [
    "ACTING",
    "BUILTIN",
    "CACHE",
    "CONFIGURED",
    "CONTAINER",
    "FILES",
    "FILES_PLACE",
    "OPAQUE",
    "OUTSIDE",
    "PLAIN",
    "STAND_INS",
    "STEPPING",
    "VIEW",
    "Kinds",
    "attributes_of",
    "contents_of",
    "has_own",
    "holders_of",
    "home_of",
    "is_generated",
    "is_heap",
    "mapping_of",
    "module_names",
    "module_of",
    "mro",
    "names_of",
    "slots_of",
]

PLAIN: Final = 0
"""Nothing to see from outside."""
VIEW: Final = 1
"""Shows what others hold."""
STEPPING: Final = 2
"""An iterator: each look changes it."""
CONTAINER: Final = 3
"""Its contents change in C, a whole call at a time."""
OPAQUE: Final = 4
"""Of a Python class that is not looked into: a call of it is taken as one step, which it may not be."""
FILES: Final = 5
"""A file: what it stands for, others may have open too."""
OUTSIDE: Final = 6
"""A database, a socket: likewise, and it may block."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTIN: Final = frozenset({BuiltinMethodType, type(array.array("i").extend)})
"""The two types of functions in C, and of their methods."""

CACHE: Final[Any] = type(functools.cache(len))
"""The type of what `functools.cache` and `lru_cache` make."""

_LOOKING: Final = _words(
    "get keys values items copy index count difference intersection isdisjoint issubset issuperset union"
    " symmetric_difference find rfind startswith endswith decode hex most_common elements total tolist tobytes getvalue"
    " join format __len__ __contains__ __getitem__ __iter__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __reversed__"
    " __bool__ __repr__ __str__ __sizeof__ __copy__ __reduce_ex__ getenv"
)
"""Methods that do not change what they are of."""

_READING: Final = frozenset(
    id(function)
    for function in (
        len, sum, min, max, sorted, any, all, iter, repr, print, format, ascii, abs, round, next, divmod, pow, hash,
        os.fspath, functools.reduce, operator.length_hint,
    )
)  # fmt: skip
"""Functions that do not change what they are handed, but for iterators, by id: they live as long as the process."""

_CALLING: Final = frozenset(
    id(function)
    for function in (
        map, filter, sorted, min, max, functools.reduce, heapq.nlargest, heapq.nsmallest, heapq.merge,
        itertools.groupby, itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile,
        itertools.filterfalse,
    )
)  # fmt: skip
"""Functions, and classes of iterators, that call a function they are handed, and show it to no others."""

_SHALLOW: Final = frozenset(
    id(function)
    for function in (
        copy.copy, inspect.getmembers, inspect.getattr_static, string.Formatter.format, string.Formatter.vformat,
        string.Template.substitute, string.Template.safe_substitute, json.dumps, json.dump,
        getattr(copy, "replace", None), getattr(inspect, "getmembers_static", None), dataclasses.replace,
    )
)  # fmt: skip
"""Functions that look at all attributes of what they are handed."""
_DEEP: Final = frozenset(
    id(function)
    for function in (
        copy.deepcopy, dataclasses.asdict, dataclasses.astuple, pickle.dumps, pickle.dump,
        pprint.pformat, pprint.pprint,
    )
)  # fmt: skip
"""Functions that look at those of what these are as well."""
_DEPTH: Final = 10
"""How deep that is."""
_REDUCING: Final = _words("__reduce_ex__ __reduce__ __getstate__ __repr__ __str__ __eq__ __format__ format format_map")
"""Names of methods that look at all attributes of their object; those of text, at what is handed to them."""

_EVALUATING: Final = frozenset(map(id, (eval, exec, inspect.getclosurevars)))
"""Functions that reach by name what functions share."""

_FREE: Final = frozenset(
    map(id, (isinstance, issubclass, callable, id, breakpoint, __import__, sys._getframe, warnings.warn))
)
"""Functions that look into nothing, but perhaps at the frame they are called from."""

_MAKES_NOTHING_OF: Final = frozenset(map(id, (type, object, super, property, staticmethod, classmethod, slice, range)))

_TRUSTED: Final = _words(
    "threading _thread queue _queue concurrent asyncio _asyncio typing typing_extensions abc _abc types functools"
    " _functools operator _operator weakref _weakref _weakrefset contextlib logging enum"
    " dataclasses inspect traceback warnings unittest string numbers time _sre re datetime _datetime"
    " fractions uuid ipaddress math cmath posixpath ntpath copyreg signal faulthandler gc sys atexit errno _signal"
    " pytest _pytest pluggy hypothesis greenlet multiprocessing _multiprocessing"
)
"""Modules that control their own state, have none that is a program's, or whose threads the explorer controls."""

_TRUSTED_INNER: Final = ("collections.abc", "_collections_abc", "reactive_runtime")

_FILE_MODULES: Final = _words("_io io posix nt os pathlib shutil tempfile genericpath glob fileinput")
_OF_PATHS: Final = frozenset(
    id(getattr(os.path, name))
    for name in ("lexists", "islink", "ismount", "realpath", "isjunction")
    if name in vars(os.path)
)
"""Functions of `posixpath` or `ntpath` that look at files; the others work on names."""
_OUTSIDE_MODULES: Final = _words(
    "sqlite3 _sqlite3 socket _socket ssl _ssl select subprocess _posixsubprocess mmap dbm _dbm _gdbm shelve"
    " ctypes _ctypes urllib http ftplib smtplib"
)
_SETTINGS: Final = _words("sys gc")
"""Modules with pairs of functions, of which one gets what the other sets."""
_PROCESSES: Final = _words("system popen startfile waitpid wait wait3 wait4 posix_spawn posix_spawnp fork_exec")
_OF_PROCESSES: Final = "·process"

CONFIGURED: Final = {
    id(logging.Logger.addHandler): "handlers",
    id(logging.Logger.removeHandler): "handlers",
    id(logging.Filterer.addFilter): "filters",
    id(logging.Filterer.removeFilter): "filters",
    id(logging.Logger.setLevel): "level",
    id(logging.Handler.setLevel): "level",
    id(logging.Handler.setFormatter): "formatter",
}
"""Methods in modules that are trusted, which change an attribute or what it holds, by id."""

FILES_PLACE: Final = "files"
"""The place of all files."""

ACTING: Final[dict[int, Any]] = {}
"""Stand-ins for functions that work on files, by id: the functions. Written as their modules are imported."""

STAND_INS: Final = "reactive_runtime.explore._standins"
"""The package of classes that say themselves what they do."""

_NO_FILES: Final = _words("getpid getppid cpu_count urandom fspath fsencode fsdecode get_terminal_size")

_STATIC: Final[dict[type, int]] = {
    **dict.fromkeys(
        (int, str, bytes, float, complex, bool, type(None), tuple, frozenset, range, slice, object, type, property),
        PLAIN,
    ),
    **dict.fromkeys((FunctionType, MethodType, BuiltinMethodType, MethodWrapperType, WrapperDescriptorType), PLAIN),
    **dict.fromkeys(
        (SimpleNamespace, ModuleType, staticmethod, classmethod, super, BaseException, type(Ellipsis)), PLAIN
    ),
    **dict.fromkeys((type({}.keys()), type({}.values()), type({}.items()), memoryview, MappingProxyType), VIEW),
    **dict.fromkeys((KeysView, ValuesView, ItemsView), VIEW),
    **dict.fromkeys((list, dict, set, bytearray, collections.deque, collections.OrderedDict), CONTAINER),
    **dict.fromkeys((io.StringIO, io.BytesIO, CACHE), CONTAINER),
    **dict.fromkeys((collections.Counter, collections.defaultdict), CONTAINER),  # parts of Counter are in Python
    **dict.fromkeys((weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet), CONTAINER),
    **dict.fromkeys((contextlib.ExitStack, contextlib.AsyncExitStack), CONTAINER),
    GeneratorType: STEPPING,
    type(os.environ): VIEW,
    type(io.BytesIO().getbuffer().obj): VIEW,
}

mro: Final = type.__dict__["__mro__"].__get__
"""The classes that a class derives from, itself first."""
_flags: Final = type.__dict__["__flags__"].__get__
_HEAP: Final = 1 << 9
names_of: Final[Callable[[type], MappingProxyType[str, Any]]] = type.__dict__["__dict__"].__get__
"""What a class has under which name; nothing of a metaclass runs for it."""


class Kinds:
    """The kinds of the types that one exploration has met."""

    def __init__(self, modules: Iterable[str] = ()) -> None:
        self._modules = frozenset(modules)
        self.stdout: Any = sys.stdout
        """The one before the exploration: no program sees the text there."""
        self._kinds: dict[type, int] = {}
        self.plain: set[type] = {kind for kind, what in _STATIC.items() if what == PLAIN}
        """Types of which nothing is to be seen."""
        self.records: set[type] = {SimpleNamespace}
        """Types whose objects have methods in code that can't be seen, which look at the attributes."""
        self.plain -= self.records
        self.filling: set[type] = {collections.defaultdict}
        """Types of which an item may be made by asking for it."""

    def of(self, kind: type) -> int:
        """The kind of a type's objects."""
        found = self._kinds.get(kind)
        if found is None:
            found = max(map(self._of_base, mro(kind)))
            if found == OUTSIDE and any(module_of(base).startswith(STAND_INS) for base in mro(kind)):
                found = PLAIN  # a database, whose operations are points
            self._kinds[kind] = found
            if any(base is SimpleNamespace or "__dataclass_fields__" in names_of(base) for base in mro(kind)):
                self.records.add(kind)
            elif found == PLAIN:
                self.plain.add(kind)
            if issubclass(kind, collections.defaultdict):
                self.filling.add(kind)
        return found

    def _of_base(self, base: type) -> int:
        """What a class contributes to those that derive from it."""
        static = _STATIC.get(base)
        if static is not None:
            return static
        module = module_of(base)
        in_view = module in self._modules and is_heap(base)  # a type in C has no code that could be rewritten
        if self._is_trusted(module) or in_view or issubclass(base, BaseException | type):
            return PLAIN
        names = names_of(base)
        functions = [value for value in names.values() if type(value) is FunctionType]
        top = module.partition(".")[0]
        if top in _OUTSIDE_MODULES:
            return PLAIN if (module, base.__name__) == ("sqlite3", "Row") else OUTSIDE
        if top in _FILE_MODULES:
            return FILES if top in ("_io", "io", "tempfile") else PLAIN
        hashes = names["__hash__"] if "__hash__" in names else _inherited_hash(base)
        if functions:
            return PLAIN if module == "builtins" or hashes not in (None, object.__hash__) else OPAQUE
        if hashes is not None and "__next__" in names:
            return STEPPING
        if module == "__main__" or (hashes is object.__hash__ and (module == "builtins" or _is_made_in_python(names))):
            return PLAIN  # it has attributes, and no method
        return CONTAINER if hashes in (None, object.__hash__) else PLAIN

    def shows(self, function: Any) -> bool:
        """Whether a function shows what it does: its code is rewritten."""
        return (
            type(function) is FunctionType
            and ((module := home_of(function)) in self._modules or module in (None, "builtins"))
            and not is_generated(function)
        )

    @staticmethod
    def evaluates(called: Any) -> bool:
        """Whether a function runs code, or looks into functions, that are not seen."""
        return id(called) in _EVALUATING

    @staticmethod
    def looks_at_attributes(called: Any, name: str) -> int:
        """How deep a function looks into the attributes of what it is handed, whatever their names: 0, 1 or more."""
        called = called.__func__ if type(called) is MethodType else called
        if id(called) in _SHALLOW:
            return 1
        if id(called) in _DEEP:
            return _DEPTH
        if name not in _REDUCING:
            return 0
        owner = getattr(called, "__self__", None) if type(called) in BUILTIN else None
        if name in ("format", "format_map") and type(owner) is str:
            return owner.count(".") + owner.count("[") + (name == "format_map")
        return int(type(called) in (*BUILTIN, MethodWrapperType) and owner is not None)

    def reaches_further(self, called: Any, name: str, owner: Any) -> bool:
        """Whether a function that can't be seen may do anything with what it is handed: it is none of a known kind."""
        container = issubclass(type(called), type) and self.of(called) == CONTAINER
        return not (container or self.looks_at_attributes(called, name) or self.calls(called, name, owner))

    def has_state(self, kind: type) -> bool:
        """Whether its objects may have attributes that a program stores."""
        return is_heap(kind) and not self._is_trusted(module_of(kind))

    def known(self, function: Any) -> bool:
        """Whether a function shows what it does, or is the explorer's own business."""
        if (
            id(function) in ACTING
            or id(function) in _SHALLOW
            or id(function) in _DEEP
            or id(function) in _EVALUATING
            or id(function) in CONFIGURED
            or id(function) in _OF_PATHS
            or (type(function) is FunctionType and id(function.__code__) in USES)
        ):
            return False
        return self.shows(function) or (type(function) is FunctionType and self._is_trusted(home_of(function) or ""))

    def method(self, kind: type, name: str) -> Any:
        """What a class has under that name; None, where it has nothing."""
        for base in mro(kind):
            names = names_of(base)
            if name in names:
                return names[name]
        return None

    @staticmethod
    def is_python(function: Any) -> bool:
        """Whether a function is written in Python."""
        return type(function) is FunctionType

    def builds(self, cls: Any) -> bool:
        """Whether the class shows in its own code how an object of it is made, or making one looks into nothing."""
        module = module_of(cls)
        if id(cls) in _MAKES_NOTHING_OF or issubclass(cls, BaseException) or self._is_trusted(module):
            return True
        made = self.method(cls, "__init__")
        if type(made) is FunctionType:
            return self.known(made) or is_generated(made)
        return module in self._modules and self.of(cls) == PLAIN

    @staticmethod
    def is_free(called: Any) -> bool:
        """Whether a builtin function looks into nothing."""
        return id(called) in _FREE

    @staticmethod
    def calls(called: Any, name: str, owner: Any) -> bool:
        """Whether a function calls those that it is handed, and does nothing else with them."""
        return id(called) in _CALLING or (name == "sort" and isinstance(owner, list))

    def changes(self, called: Any, name: str, owner: Any) -> bool:
        """Whether a call changes its owner, or, where it has none, what it is handed."""
        kind = type(called)
        if issubclass(kind, type):
            return type(self.method(called, "__init__")) is FunctionType
        if owner is not None and name == "__getitem__" and type(owner) in self.filling:
            return True
        return name not in _LOOKING and id(called) not in _READING

    def place(self, called: Any) -> tuple[bool, str | None]:
        """Whether what a function does can't be seen, and the place outside of the program that it works on, if any."""
        called = ACTING.get(id(called), called)
        kind = type(called)
        if issubclass(kind, type):
            module, name = module_of(called), ""
            in_python = type(self.method(called, "__init__")) is FunctionType
        elif kind in BUILTIN or kind in (FunctionType, MethodType):
            function = called.__func__ if kind is MethodType else called
            module = (home_of(function) if type(function) is FunctionType else called.__module__) or ""
            name, in_python = called.__qualname__, kind not in BUILTIN
            if kind is MethodType and type(called.__self__) is type(os.environ) and name == "Mapping.get":
                return False, None  # it looks once
        else:
            return self.of(kind) == OPAQUE, None
        top = module.partition(".")[0] if type(module) is str else ""
        if top in _OUTSIDE_MODULES:
            return True, _outside_of(top)
        if id(called) in _OF_PATHS:
            return False, FILES_PLACE
        if top in _SETTINGS and name[:3] in ("get", "set") and hasattr(sys.modules[top], f"set{name[3:]}"):
            return False, f"{top}.{name[3:].strip('_')}"
        if top in _FILE_MODULES:
            if name in _PROCESSES or name.startswith("spawn"):
                return True, _OF_PROCESSES
            if name in _NO_FILES or name.startswith("PurePath") or issubclass(kind, type):
                return False, None
            return in_python and top not in ("os", "pathlib", "genericpath"), FILES_PLACE
        if in_python and top not in sys.stdlib_module_names and not self._is_trusted(module):
            return True, f"package {top}"
        return in_python, None

    @staticmethod
    def owner_of(called: Any) -> Any:
        """The object that a function without an owner reads, apart from its arguments; None: it reads none."""
        return os.environ if called is os.getenv else None

    def base_of(self, entry: Any) -> Any:
        """The object that has the elements of an array in C, if that is another one; else None."""
        for base in mro(type(entry)):
            place = names_of(base).get("base")
            if type(place) is GetSetDescriptorType:
                return place.__get__(entry)
        return None

    def outside(self, kind: type) -> str:
        """The place outside of the program that objects of this type stand for."""
        for base in mro(kind):
            top = module_of(base).partition(".")[0]
            if top in _OUTSIDE_MODULES:
                return _outside_of(top)
        return FILES_PLACE

    def beneath(self, entry: Any) -> list[Any]:
        """What a view or an iterator shows."""
        kind = type(entry)
        if kind is GeneratorType:
            return []
        if kind is memoryview:
            return [entry.obj]
        if kind is type(os.environ):
            return [object.__getattribute__(entry, "__dict__")["_data"]]
        found: list[Any] = []
        if issubclass(kind, KeysView | ValuesView | ItemsView) and kind.__module__ != "builtins":
            return [object.__getattribute__(entry, "_mapping")]
        if issubclass(kind, collections.ChainMap | collections.UserDict | collections.UserList):
            instance = object.__getattribute__(entry, "__dict__")
            found.extend(instance.get("maps", ()))
            found.extend(instance[name] for name in ("data",) if name in instance)
            return found
        if self.of(kind) == OPAQUE:
            return []
        for other in gc.get_referents(entry)[:20]:
            if type(other) is tuple:
                found.extend(other[:20])
            elif self.of(type(other)) != PLAIN:
                found.append(other)
        return found

    @staticmethod
    def is_partial(kind: type) -> bool:
        """Whether its objects call another function with arguments they hold."""
        return issubclass(kind, functools.partial)

    @staticmethod
    def _is_trusted(module: str) -> bool:
        return (module.partition(".")[0] in _TRUSTED and module != "unittest.mock") or module.startswith(_TRUSTED_INNER)


def _outside_of(module: str) -> str:
    """The place outside of the program that a module works on."""
    name = module.strip("_")
    return _OF_PROCESSES if name in ("subprocess", "posixsubprocess") else f"·{name}"


def is_heap(cls: type) -> bool:
    """Whether a class was made by a statement: its attributes can be stored."""
    return bool(_flags(cls) & _HEAP)


def is_generated(function: FunctionType) -> bool:
    """Whether it is a method that a dataclass has made itself: it has no source."""
    return function.__code__.co_qualname.startswith("__create_fn__")


module_names: Final[Callable[[ModuleType], dict[str, Any]]] = vars(ModuleType)["__dict__"].__get__
"""What a module has under which name; nothing of its class runs for it."""

NO_ATTRIBUTES: Final[dict[str, Any]] = {}
"""Those of an object that has no mapping of them."""


def attributes_of(item: Any, kind: type) -> dict[str, Any]:
    """The attributes that an object has of its own; nothing of the program runs for it."""
    for base in mro(kind)[:-1]:
        names = names_of(base)
        if "__dict__" in names:
            place = names["__dict__"]
            found = place.__get__(item) if type(place) in (GetSetDescriptorType, MemberDescriptorType) else None
            return found if isinstance(found, dict) else NO_ATTRIBUTES
    return NO_ATTRIBUTES


def has_own(item: Any, kind: type, name: str) -> bool:
    """Whether an object has that attribute of its own. The mapping may be of a class of the program's."""
    return dict.__contains__(attributes_of(item, kind), name)


def mapping_of(entry: Any) -> dict[str, Any] | None:
    """The mapping that has the attributes of an object, a class or a module; nothing of the program runs for it."""
    kind = type(entry)
    if issubclass(kind, type):
        found = gc.get_referents(names_of(entry))[0]
        return found if type(found) is dict else None
    if issubclass(kind, ModuleType):
        names: dict[str, Any] = module_names(entry)
        return names
    found = attributes_of(entry, kind)
    return None if found is NO_ATTRIBUTES else found


def contents_of(entry: Any) -> dict[str, Any]:
    """The attributes that an object or a class has of its own, as they are; nothing of the program runs for it."""
    held = {name: value for name, value in dict.items(mapping_of(entry) or {}) if type(name) is str}
    for base in () if issubclass(type(entry), type) else mro(type(entry)):
        for name, place in names_of(base).items():
            if type(place) is MemberDescriptorType and not name.startswith("__"):
                try:
                    held[name] = place.__get__(entry)
                except AttributeError:
                    continue
    return held


def slots_of(entry: Any) -> list[str]:
    """The attributes that an object has in slots."""
    return [
        name
        for base in mro(type(entry))
        for name, place in names_of(base).items()
        if type(place) is MemberDescriptorType and not name.startswith("__")
    ]


def holders_of(item: Any) -> list[Any]:
    """All that an attribute of an object may be found in, itself first; nothing of the program runs for it.

    Which of them has it when it is looked for is not known until then.
    """
    kind = type(item)
    classes = (*mro(item)[1:], *mro(kind)) if issubclass(kind, type) else mro(kind)
    return [item, *(base for base in classes if is_heap(base))]


def home_of(function: FunctionType) -> Any:
    """The name of the module that its code stands in; what wraps another function may say the name of that one's."""
    return function.__globals__.get("__name__")


def module_of(cls: type) -> str:
    """The name of the module that a class was made in."""
    module = names_of(cls).get("__module__")
    if type(module) is not str:  # a static type of C: it is a part of the name
        module = type.__dict__["__module__"].__get__(cls)
    return module if type(module) is str else ""


def _inherited_hash(base: type) -> Any:
    for cls in mro(base):
        names = names_of(cls)
        if "__hash__" in names:
            return names["__hash__"]
    return None


def _is_made_in_python(names: Any) -> bool:
    return "__dict__" in names or "__weakref__" in names or "__slots__" in names
