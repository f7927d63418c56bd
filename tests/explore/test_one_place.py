"""What threads share is one place, in whichever ways they reach it: a race of two ways is found, and so is each other.

Each way adds one to what is shared. Two threads do so in two ways, with a lock around it and without.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

from explore.brute_force import Traced, searched
from reactive_runtime.explore import explore, replay
from reactive_runtime.explore._bounded import Bounded
from reactive_runtime.explore._dpor import DPOR

HEAD = """
import sys, threading

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
    ],
    "an attribute of a dictionary": ["self.itself.n += 1", "self.itself['n'] += 1", "vars(self.itself)['n'] += 1"],
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
RESULTS = {
    "an attribute": "self.plain.n",
    "an attribute of a dictionary": "self.itself.n",
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
                found[f"{place}: {one} beside {other}"] = program(place, one, other)
    return found


def program(place: str, one: str, other: str) -> str:
    """A class in which two threads add one, and the same with a lock."""
    source = f"class Open(Counted):\n    def at_end(self): assert {RESULTS[place]} == 2\n"
    guarded = "class Guarded(Open):\n"
    for name, way in (("a", one), ("b", other)):
        statements = way.split("; ")
        declared = [statements.pop(0)] if statements[0].startswith("global ") else []
        source += f"    def actor_{name}(self):\n" + "".join(f"        {line}\n" for line in [*declared, *statements])
        inside = [*declared, "with self.lock:", *(f"    {line}" for line in statements)]
        guarded += f"    def actor_{name}(self):\n" + "".join(f"        {line}\n" for line in inside)
    return source + guarded


PAIRS = pairs()
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


@pytest.mark.parametrize("engine", ["threads", "greenlets"])
@pytest.mark.parametrize("pair", PAIRS)
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


@pytest.mark.parametrize("pair", PAIRS)
def test_all_searches_come_to_the_same(pair: str, tmp_path: Path) -> None:
    module = made(tmp_path, PAIRS[pair])
    for program in (module.Open, module.Guarded):
        brute = searched(program, Traced())
        assert brute is not None
        outcomes, _, traces = brute
        assert searched(program, DPOR()) == (outcomes, traces, 0)
        reduced = searched(program, Bounded())
        assert reduced is not None
        assert reduced[0] == outcomes
