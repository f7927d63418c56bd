"""Every way to look into a container, or to change it, is seen: a planted breach is found, or named as unseen."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from searching import NIGHT

from reactive_runtime.explore import explore, replay

HEAD = """
import array, bisect, collections, contextlib, functools, heapq, itertools, operator, threading, weakref
from heapq import heappush

class MyList(list): pass
class Told(list):
    def push(self, item): self.append(item)
    def size(self): return len(self)
    def append(self, item): super().append(item)
class MyDict(dict): pass
class Filled(dict):
    def __missing__(self, key): self[key] = 0; return 0
class MySet(set): pass
class MyDeque(collections.deque): pass
class MyUserDict(collections.UserDict): pass

def count(*items, **named): return len(items) + len(named)
def size_of(items): return len(items)
def alike(items): return array.array("i", [0]) if isinstance(items, array.array) else type(items)([0])
C = None
"""


class Sort(NamedTuple):
    """Containers that are used alike."""

    made: dict[str, str]
    reads: dict[str, str]
    """What gives the same twice, unless there was a change between."""
    writes: dict[str, str]
    known: str
    """A read that has always been seen."""


ITERATIONS = {
    "for": "0\nfor _ in c: n += 1",
    "comprehension": "len([x for x in c])",
    "generator": "sum(1 for x in c)",
    "enumerate": "0\nfor i, _ in enumerate(c): n += 1",
    "star": "[*c]",
    "star argument": "count(*c)",
    "unpacking": "None\n*n, = c",
    "list": "list(c)",
    "len": "len(c)",
    "sorted": "sorted(c)",
    "iter": "None\nit = iter(c)\nn = list(it)",
    "map": "list(map(str, c))",
    "truth": "1 if c else 0",
    "not": "not c",
    "and": "0\nif self.yes and c: n = 1",
    "contains": "(1 in c, 7 in c)",
    "assert": "None\ntry:\n    assert c\nexcept AssertionError: n = 0",
    "while": "0\nwhile c and n < 1: n += 1",
    "equal": "c == self.empty",
    "print": "repr(c)",
    "text": 'f"{c}"',
    "partial": "functools.partial(len, c)()",
    "alias of a function": "None\nlength = len\nn = length(c)",
    "method of a method": "c.__len__()",
    "own function": "size_of(c)",
    "yield from": "None\ndef items():\n    yield from c\nn = list(items())",
    "join": "','.join(map(str, c))",
    "match": "None\nmatch c:\n    case _ if c: n = 1",
}
SEQUENCE = {
    **ITERATIONS,
    "count": "c.count(7)",
    "reversed": "list(reversed(c))",
    "min": "min(c, default=-1)",
    "sum": "sum(c)",
    "of the class": "type(c).__len__(c)",
    "taken": "None\ncounted = c.count\nn = counted(7)",
}
MAPPING = {
    **ITERATIONS,
    "get": "c.get(1)",
    "keys": "list(c.keys())",
    "items": "0\nfor k, v in c.items(): n += 1",
    "a view": "None\nview = c.values()\nn = len(view)",
    "two stars": "{**c}",
    "two star arguments": "count(**{str(k): v for k, v in c.items()})",
    "dict": "dict(c)",
    "itemgetter": "None\ntry: n = operator.getitem(c, 1)\nexcept KeyError: n = None",
}
SORTS = {
    "sequence": Sort(
        {
            "list": "[]",
            "subclass": "MyList()",
            "subclass with methods": "Told()",
            "deque": "collections.deque()",
            "subclass of deque": "MyDeque()",
            "bytearray": "bytearray()",
            "array": "array.array('i')",
            "UserList": "collections.UserList()",
        },
        SEQUENCE,
        {
            "append": "c.append(7)",
            "extend": "c.extend([0])",
            "taken": "put = c.append\nput(0)",
            "of the class": "type(c).append(c, 0)",
            "partial": "functools.partial(c.append, 0)()",
            "map": "list(map(c.append, [0]))",
            "operator": "operator.iadd(c, alike(c))",
            "method of a method": "c.__iadd__(alike(c))",
            "+=": "c += alike(c)",
            "insort": "bisect.insort(c, 0)",
            "by name": "getattr(c, 'append')(0)",
            "attrgetter": "operator.methodcaller('append', 0)(c)",
        },
        "len(c)",
    ),
    "slices": Sort(
        {"list": "[]", "subclass": "MyList()", "bytearray": "bytearray()", "array": "array.array('i')"},
        {"slice": "c[:]", "tail": "c[-1:]", "of a slice": "len(c[0:])"},
        {"slice": "c[len(c):] = alike(c)", "in place": "c[:] = c + alike(c)"},
        "len(c)",
    ),
    "heap": Sort(
        {"list": "[]", "subclass": "MyList()"},
        {"nsmallest": "heapq.nsmallest(9, c)"},
        {"heappush": "heapq.heappush(c, 0)", "by its name": "heappush(c, 0)", "heapify": "c += (0,)\nheapq.heapify(c)"},
        "len(c)",
    ),
    "mapping": Sort(
        {
            "dict": "{}",
            "subclass": "MyDict()",
            "with missing": "Filled()",
            "defaultdict": "collections.defaultdict(int)",
            "Counter": "collections.Counter()",
            "OrderedDict": "collections.OrderedDict()",
            "ChainMap": "collections.ChainMap({})",
            "UserDict": "collections.UserDict()",
            "subclass of UserDict": "MyUserDict()",
        },
        MAPPING,
        {
            "item": "c[c_of()] = 5",
            "update": "c.update({c_of(): 5})",
            "setdefault": "c.setdefault(c_of(), 5)",
            "setitem": "operator.setitem(c, c_of(), 5)",
            "method of a method": "c.__setitem__(c_of(), 5)",
            "of the class": "type(c).__setitem__(c, c_of(), 5)",
            "taken": "put = c.setdefault\nput(c_of(), 5)",
            "|=": "c |= {c_of(): 5}",
        },
        "len(c)",
    ),
    "set": Sort(
        {"set": "set()", "subclass": "MySet()"},
        {**ITERATIONS, "difference": "c - {0}", "subset": "c <= {0}", "copy": "c.copy()"},
        {
            "add": "c.add(c_of())",
            "update": "c.update([c_of()])",
            "|=": "c |= {c_of()}",
            "taken": "put = c.add\nput(c_of())",
        },
        "len(c)",
    ),
}


def indented(code: str, spaces: int) -> str:
    return code.replace("\n", "\n" + " " * spaces)


def through(way: str, code: str) -> str:
    """`code`, which names its container c, with the container reached in this way."""
    if way == "attribute":
        return _renamed(code, "self.c")
    if way == "global":
        return _renamed(code, "C")
    if way == "alias":
        return f"c = self.other\n{code}"
    if way == "closure":
        changes = "nonlocal c\n    " if "c += " in code or "c |= " in code else ""
        return f"c = self.c\ndef inner():\n    {changes}n = None\n    {indented(code, 4)}\n    return n\nn = inner()"
    return f"c = self.c\n{code}"


def _renamed(code: str, name: str) -> str:
    return re.sub(r"\bc\b", name, code)


def scenario(name: str, made: str, first: str, second: str, third: str, other: str) -> str:
    """Thread a does the first three; thread b the other. What a gets first and last is to agree."""
    globally = "global C" if "C" in first + second + third + other else "pass"
    return f"""
class {name}:
    def __init__(self):
        {globally}
        self.c = self.other = {made}
        C = self.c
        self.empty, self.yes = {made}, True
    def actor_a(self):
        {globally}
        c_of = lambda: 0
        {indented(first, 8)}
        before = n
        {indented(second, 8)}
        {indented(third, 8)}
        assert before == n, (before, n)
    def actor_b(self):
        {globally}
        c_of = lambda: 1
        {indented(other, 8)}
"""


def programs() -> dict[str, str]:
    """By name, each as the source of a class; by day every fifth."""
    found: dict[str, str] = {}
    ways = ("attribute", "local", "global", "closure", "alias")
    turn = itertools.cycle(ways)
    for sort, (made, reads, writes, known) in SORTS.items():
        write = next(iter(writes.values()))
        for container, expression in made.items():
            for read, code in reads.items():
                for way in [next(turn) for _ in range(3 if container in ("list", "dict") else 1)]:
                    reading = through(way, f"n = {code}")
                    title = f"{sort} {container}: read by {read}, through {way}"
                    found[title] = scenario("P", expression, reading, "", reading, through("local", write))
            for change, code in writes.items():
                if (container, change) in NONE:
                    continue
                for way in [next(turn) for _ in range(3 if container in ("list", "dict") else 1)]:
                    title = f"{sort} {container}: changed by {change}, through {way}"
                    looking = through("local", f"n = {known}")
                    found[title] = scenario("P", expression, looking, "", looking, through(way, code))
    return found if NIGHT else dict(itertools.islice(found.items(), None, None, 5))


NONE = {("deque", "insort"), ("subclass of deque", "insort")}
"""What these containers do not have, or what leaves them as they are."""

PROGRAMS = programs()


@pytest.mark.parametrize("container", sorted({name.partition(":")[0] for name in PROGRAMS}))
def test_a_change_between_two_looks_is_found_or_named(container: str, tmp_path: Path) -> None:
    silent = []
    for number, (name, source) in enumerate(PROGRAMS.items()):
        if name.startswith(f"{container}:"):
            result = explore(_made(tmp_path / f"made_{number}.py", source), schedules=200, shrink=False)
            if result.failure is None and not (result.not_looked_into and result.verdict.kind == "incomplete"):
                silent.append(f"{name}: {result.verdict}")
    assert not silent, "\n".join(silent)


def _made(file: Path, source: str) -> Any:
    file.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.P


OTHERS = """
import os, random, sqlite3, tempfile
from pathlib import Path
FOLDER = tempfile.mkdtemp()

class Base:
    def __init__(self): self.n, self.c = 0, [1, 2, 3]
    def actor_b(self): self.actor_a()
    def at_end(self): assert self.n == 2

class SharedGenerator(Base):
    def __init__(self): self.numbers = self.made()
    def made(self):
        n = 0
        while True:
            n += 1
            yield n
    def actor_a(self): next(self.numbers)
    def at_end(self): pass

class GeneratorInALoop(SharedGenerator):
    def actor_a(self):
        for n in self.numbers: break

class ByName(Base):
    def actor_a(self): setattr(self, "n", getattr(self, "n") + 1)

class OfObject(Base):
    def actor_a(self): object.__setattr__(self, "n", self.n + 1)

class Vars(Base):
    def actor_a(self): vars(self)["n"] += 1

class File(Base):
    def __init__(self): Path(FOLDER, "f").write_text("0")
    def actor_a(self):
        with open(os.path.join(FOLDER, "f")) as file: n = int(file.read())
        with open(os.path.join(FOLDER, "f"), "w") as file: file.write(str(n + 1))
    def at_end(self): assert Path(FOLDER, "f").read_text() == "2"

class FileByPath(File):
    def actor_a(self):
        path = Path(FOLDER) / "f"
        path.write_text(str(int(path.read_text()) + 1))

class MemoryOfBytes(Base):
    def __init__(self):
        self.b = bytearray(4)
        self.m = memoryview(self.b)
    def actor_a(self): self.m[0] += 1
    def actor_b(self): self.b[0] += 1
    def at_end(self): assert self.b[0] == 2

class OfTheClass(Base):
    n = 0
    def __init__(self): type(self).n = 0
    def actor_a(self): type(self).n = self.n + 1
    def actor_b(self): type(self).n = self.n + 1
    def at_end(self): assert self.n == 2

class AskedOfTheObject(Base):
    closed = False
    def __init__(self): self.times, type(self).closed = 0, False
    def close(self):
        if not self.closed:
            type(self).closed = True
            self.times += 1
    def actor_a(self): self.close()
    def actor_b(self): self.close()
    def at_end(self): assert self.times == 1

class OfTheBase(Base):
    def __init__(self):
        self.base = type("B", (), {"n": 0})
        self.derived = type("D", (self.base,), {})
    def actor_a(self): self.base.n = self.derived.n + 1
    def actor_b(self): self.base.n = self.derived.n + 1
    def at_end(self): assert self.base.n == 2

class ByNameOfTheClass(Base):
    n = 0
    def __init__(self): type(self).n = 0
    def actor_a(self): setattr(type(self), "n", getattr(self, "n") + 1)
    def actor_b(self): setattr(type(self), "n", getattr(self, "n") + 1)
    def at_end(self): assert self.n == 2

class Weak(Base):
    def __init__(self): self.kept, self.weak = [], weakref.WeakValueDictionary()
    def get(self):
        if self.weak.get("k") is None:
            self.kept.append(type("T", (), {})())
            self.weak["k"] = self.kept[-1]
    def actor_a(self): self.get()
    def actor_b(self): self.get()
    def at_end(self): assert len(self.kept) == 1

class WeakKeys(Base):
    def __init__(self): self.weak = weakref.WeakKeyDictionary({Base: 0})
    def actor_a(self): self.weak[Base] += 1
    def actor_b(self): self.weak[Base] += 1
    def at_end(self): assert self.weak[Base] == 2

class WeakMembers(Base):
    def __init__(self): self.weak, self.times = weakref.WeakSet(), 0
    def add(self):
        if Base not in self.weak:
            self.weak.add(Base)
            self.times += 1
    def actor_a(self): self.add()
    def actor_b(self): self.add()
    def at_end(self): assert self.times == 1

class Stack(Base):
    def __init__(self): self.stack, self.closed = contextlib.ExitStack(), []
    def close(self): self.closed.append(1)
    def actor_a(self): self.stack.callback(self.close)
    def actor_b(self): self.stack.close()
    def at_end(self): assert self.closed

class Database(Base):
    def __init__(self):
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("create table t (n)")
        self.db.execute("insert into t values (0)")
    def actor_a(self):
        n = self.db.execute("select n from t").fetchone()[0]
        self.db.execute("update t set n = ?", (n + 1,))
    def at_end(self): assert self.db.execute("select n from t").fetchone() == (2,)
    def tear_down(self): self.db.close()

class InPython(Base):
    def actor_a(self): self.c.append(4)
    def actor_b(self): random.Random(1).shuffle(self.c)
    def at_end(self): pass

class Nothing(Base):
    def actor_a(self): return os.path.join("a", "b"), sorted([2, 1]), [n for n in range(3)]
    def at_end(self): pass
"""

NAMED = {
    "InPython": "random.Random(1).shuffle(self.c)",
}
FOUND = sorted({*re.findall(r"class (\w+)", OTHERS)} - {*NAMED, "Base", "Nothing"})


@pytest.fixture
def others(tmp_path: Path) -> Any:
    _made(tmp_path / "made_others.py", f"{OTHERS}\nP = None\n")
    return sys.modules["made_others"]


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("strategy", ["portfolio", "bounded", "dpor"])
def test_what_is_shared_in_another_way_is_found(name: str, strategy: str, others: Any) -> None:
    program = getattr(others, name)
    failure = explore(program, strategy=strategy).failure
    assert failure is not None
    again = replay(program, failure.token).failure
    assert again is not None
    assert again.kind == failure.kind


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_looked_into_is_named(name: str, others: Any) -> None:
    result = explore(getattr(others, name))
    assert result.holds
    assert result.verdict.kind == "incomplete"
    line = next(n for n, text in enumerate((HEAD + OTHERS).splitlines(), 1) if NAMED[name] in text)
    assert f"`{NAMED[name]}` at made_others.py:{line}" in result.not_looked_into
    assert f"held, but not looked into: {result.not_looked_into[0]}" in str(result)


def test_what_is_not_shared_is_not_named(others: Any) -> None:
    result = explore(others.Nothing)
    assert (str(result.verdict), result.not_looked_into) == ("exhausted", [])
