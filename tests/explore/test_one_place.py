"""What threads share is one place, in whichever ways they reach it: a race of two ways is found, and so is each other.

Two threads each add one to what is shared, or one of them looks twice, in two ways, with a lock and without.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
from searching import ENGINES, by_day

from explore.brute_force import Traced, searched
from reactive_runtime.explore import explore, replay
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.dpor import DPOR

HEAD = """
import functools, itertools, operator, sys, threading

N = M = 0
THIS = sys.modules[__name__]

class Plain:
    n = 0

class AsItself(dict):
    def __init__(self): self.__dict__ = self

class Counted:
    def __init__(self):
        global N
        self.plain, self.other, self.itself = Plain(), Plain(), AsItself()
        self.plain.n = self.itself.n = 0
        self.other.__dict__ = self.plain.__dict__
        self.alias = self.plain.__dict__
        self.items, self.nothing = [0, 0], Plain()
        self.lock = threading.Lock()
        N = THIS.M = Plain.n = 0
"""

WAYS = {
    "an attribute": [
        "self.plain.n += 1",
        "self.plain.__dict__['n'] += 1",
        "vars(self.plain)['n'] = vars(self.plain)['n'] + 1",
        "n = self.plain.__dict__.get('n'); self.plain.__dict__.update(n=n + 1)",
        "n = dict(vars(self.plain))['n']; vars(self.plain).update({'n': n + 1})",
        "n = self.plain.__dict__.pop('n'); self.plain.__dict__.setdefault('n', n + 1)",
        "self.plain.__dict__ |= {'n': self.plain.n + 1}",
        "getattr(self.plain, '__dict__')['n'] += 1",
        "object.__getattribute__(self.plain, '__dict__')['n'] += 1",
        "show = vars; show(self.plain)['n'] += 1",
        "self.alias['n'] += 1",
        "self.other.n += 1",
        "setattr(self.other, 'n', self.alias['n'] + 1)",
        "self.plain.n = operator.attrgetter('n')(self.plain) + 1",
        "self.plain.n = operator.attrgetter('lock', 'plain.n')(self)[1] + 1",
        "self.plain.n = list(map(operator.attrgetter('n'), [self.plain]))[0] + 1",
        "self.plain.n = max(map(len, [range(self.plain.n)]), key=operator.methodcaller('__abs__')) + 1",
        "self.plain.n = functools.partial(operator.attrgetter('plain.n'), self)() + 1",
        "self.plain.n = functools.reduce(getattr, ['plain', 'n'], self) + 1",
        "self.plain.n = operator.methodcaller('__getattribute__', 'n')(self.plain) + 1",
        "operator.methodcaller('__setattr__', 'n', self.plain.n + 1)(self.plain)",
        "self.plain.n = operator.methodcaller('get', 'n')(operator.attrgetter('__dict__')(self.plain)) + 1",
        "operator.methodcaller('update', n=self.plain.n + 1)(self.alias)",
    ],
    "an attribute of a dictionary": ["self.itself.n += 1", "self.itself['n'] += 1", "vars(self.itself)['n'] += 1"],
    "an entry": [
        "self.items[0] += 1",
        "self.items[0] = operator.itemgetter(0)(self.items) + 1",
        "self.items[0] = sum(operator.itemgetter(0, 1)(self.items)) + 1",
        "self.items[0] = list(map(operator.itemgetter(0), [self.items]))[0] + 1",
        "self.items[0] = sorted([self.items], key=operator.itemgetter(0))[0][0] + 1",
        "operator.methodcaller('__setitem__', 0, list(map(sum, [self.items]))[0] + 1)(self.items)",
        "operator.setitem(self.items, 0, operator.methodcaller('copy')(self.items)[0] + 1)",
    ],
    "an attribute of a class": [
        "Plain.n += 1",
        "Plain.n = Plain.__dict__['n'] + 1",
        "setattr(Plain, 'n', vars(Plain).get('n') + 1)",
        "type.__setattr__(Plain, 'n', dict(Plain.__dict__)['n'] + 1)",
    ],
    "a global name": [
        "global N; N += 1",
        "global N; (N := N + 1)",
        "globals()['N'] += 1",
        "globals().update(N=globals().get('N') + 1)",
        "THIS.N += 1",
        "setattr(THIS, 'N', getattr(THIS, 'N') + 1)",
        "vars(THIS)['N'] += 1",
        "THIS.__dict__['N'] = N + 1",
        "sys.modules[__name__].N = N + 1",
        "Counted.__init__.__globals__['N'] = N + 1",
    ],
    "a name of the module": [
        "THIS.M = M + 1",
        "vars(THIS)['M'] = M + 1",
        "globals()['M'] = [M for _ in (1,)][0] + 1",
        "setattr(THIS, 'M', (lambda: M)() + 1)",
    ],
}
READS = {
    "an attribute": [
        "self.other.n",
        "vars(self.plain).copy()",
        "dict(self.alias)",
        "operator.attrgetter('n')(self.plain)",
        "operator.attrgetter('lock', 'plain.n')(self)",
        "list(map(operator.attrgetter('n'), [self.plain]))",
        "list(map(getattr, [self.plain], ['n']))",
        "functools.partial(operator.attrgetter('plain.n'), self)()",
        "functools.reduce(getattr, ['plain', 'n'], self)",
        "operator.methodcaller('__getattribute__', 'n')(self.plain)",
        "operator.methodcaller('get', 'n')(operator.attrgetter('__dict__')(self.plain))",
        "sorted([self.plain, Plain], key=operator.attrgetter('n'))[-1] is Plain",
    ],
    "an attribute of a dictionary": ["len(self.itself), list(self.itself.values())", "{**self.itself}"],
    "an entry": [
        "operator.itemgetter(0)(self.items)",
        "operator.itemgetter(1, 0)(self.items)",
        "list(map(operator.itemgetter(0), [self.items]))",
        "list(map(sum, [self.items]))",
        "operator.methodcaller('copy')(self.items)",
        "min([self.items, [0, 1]], key=operator.itemgetter(0))[1]",
        "[key for key, _ in itertools.groupby([self.items], operator.itemgetter(0))]",
    ],
    "an attribute of a class": ["self.nothing.n", "vars(Plain)['n']", "operator.attrgetter('n')(Plain)"],
    "a global name": ["N", "THIS.N", "globals()['N']", "vars(THIS).get('N')", "operator.attrgetter('N')(THIS)"],
    "a name of the module": ["M", "[M for _ in range(1)]", "(lambda: M)()", "f'{M}'", "operator.attrgetter('M')(THIS)"],
}
"""What gives the same twice, unless there was a change between."""

RESULTS = {
    "an attribute": "self.plain.n",
    "an attribute of a dictionary": "self.itself.n",
    "an entry": "self.items[0]",
    "an attribute of a class": "Plain.n",
    "a global name": "N",
    "a name of the module": "M",
}


def pairs() -> dict[str, str]:
    """Each way beside the first, and beside the next one, as the source of two classes."""
    found = {}
    for place, ways in WAYS.items():
        for number, one in enumerate(ways):
            for other in dict.fromkeys((ways[0], ways[(number + 1) % len(ways)])):
                found[f"{place}: {one} beside {other}"] = program(f"assert {RESULTS[place]} == 2", one, other)
    return found


def looks() -> dict[str, str]:
    """Each way to look beside some to change, as the source of two classes."""
    found = {}
    for place, reads in READS.items():
        for number, read in enumerate(reads):
            ways = WAYS[place]
            for way in dict.fromkeys((ways[0], ways[(number + 1) % len(ways)])):
                looking = f"before = {read}; after = {read}; assert before == after"
                found[f"{place}: {read} beside {way}"] = program("pass", looking, way)
    return found


def program(at_end: str, one: str, other: str) -> str:
    """A class in which two threads do this, and the same with a lock."""
    source = f"class Open(Counted):\n    def at_end(self): {at_end}\n"
    guarded = "class Guarded(Open):\n"
    for name, way in (("a", one), ("b", other)):
        statements = way.split("; ")
        declared = [statements.pop(0)] if statements[0].startswith("global ") else []
        source += f"    def actor_{name}(self):\n" + "".join(f"        {line}\n" for line in [*declared, *statements])
        inside = [*declared, "with self.lock:", *(f"    {line}" for line in statements)]
        guarded += f"    def actor_{name}(self):\n" + "".join(f"        {line}\n" for line in inside)
    return source + guarded


PAIRS = {**pairs(), **looks()}
CASES = by_day(3, itertools.product(PAIRS, ["threads", "greenlets"]))
BY_DAY = list(dict.fromkeys((pair, engine if engine in ENGINES else "threads") for pair, engine in CASES))
MADE = itertools.count()


def made(folder: Path, source: str) -> Any:
    """The module of that source."""
    file = folder / f"one_place_{next(MADE)}.py"
    file.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_way_is_there_by_day() -> None:
    pairs = {pair for pair, _ in BY_DAY}
    of_all, of_day = ([pair.partition(": ")[2].split(" beside ") for pair in some] for some in (PAIRS, pairs))
    assert {way for ways in of_all for way in ways} == {way for ways in of_day for way in ways}


@pytest.mark.parametrize(("pair", "engine"), BY_DAY)
def test_a_race_of_two_ways_is_found_and_none_where_there_is_a_lock(pair: str, engine: Any, tmp_path: Path) -> None:
    module = made(tmp_path, PAIRS[pair])
    for strategy in ("portfolio", "bounded", "dpor"):
        failure = explore(module.Open, strategy=strategy, engine=engine).failure
        assert failure is not None, strategy
        again = replay(module.Open, failure.token).failure
        assert again is not None, strategy
        assert again.kind == failure.kind
    for strategy in ("bounded", "dpor"):
        assert str(explore(module.Guarded, strategy=strategy, engine=engine).assert_holds().verdict) == "exhausted"


@pytest.mark.parametrize("pair", by_day(2, PAIRS))
def test_all_searches_come_to_the_same(pair: str, tmp_path: Path) -> None:
    module = made(tmp_path, PAIRS[pair])
    for program in (module.Open, module.Guarded):
        brute = searched(program, Traced(), 4_000)
        assert brute is not None
        outcomes, _, traces = brute
        found = searched(program, DPOR())
        assert found is not None
        assert found == (outcomes, traces, 0)
        reduced = searched(program, Bounded())
        assert reduced is not None
        assert reduced[0] == outcomes
