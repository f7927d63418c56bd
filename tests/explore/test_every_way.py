"""No way to read or to store what threads share lets an update be lost unseen: it is found, or the verdict names it.

Two threads each read a number, in one way, and store the next one, in another. Without a lock one of the two updates
can be lost; a search that comes to its end and does not say so would be wrong. With a lock, none is lost.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from searching import by_day

from reactive_runtime.explore import explore

HEAD = """
import array, collections, contextlib, copy, copyreg, dataclasses, functools, importlib, inspect, json, operator, pickle
import string, sys, threading, types

N = 0
THIS = sys.modules[__name__]

class Plain:
    __match_args__ = ("n",)
    n = 0
    def __init__(self, n=0): self.n = n
    def method(self): return 0

def made(v): return type("Made", (Plain,), {"method": lambda self: v})

@dataclasses.dataclass(order=True)
class Data:
    n: int = 0

class Slots:
    __slots__ = ("n",)
    def __init__(self, n=0): self.n = n

class Prop:
    def __init__(self): self._n = 0
    @property
    def n(self): return self._n
    @n.setter
    def n(self, value): self._n = value

@contextlib.contextmanager
def entered(value): yield value

class AsIs:
    def __init__(self, value): self.value = value
    def __enter__(self): return self.value
    def __exit__(self, *_): pass

class Number(Exception):
    def __init__(self, n): self.n = n
    def __int__(self): return self.n

def helper(): return 0
first_helper = helper

class Holder:
    n = 0
first_holder = Holder

import types as imported

def cell(function):
    return function.__closure__[function.__code__.co_freevars.index('c')]

def value(item):
    return item if isinstance(item, int) else item.n if hasattr(item, "n") else item()

class Counted:
    def __init__(self):
        global N
        N = Plain.n = 0
        THIS.helper, THIS.Holder, THIS.imported = first_helper, first_holder, Plain
        self.o, self.data, self.slots, self.prop = Plain(), Data(), Slots(), Prop()
        self.space = types.SimpleNamespace(n=0)
        self.bare = Bare()
        self.l, self.d, self.a, self.b = [0], {"n": 0}, array.array("q", [0]), bytearray(1)
        self.lock = threading.Lock()
        self.one, self.other, self.closed = self.functions()

    def actor_a(self): self.one()
    def actor_b(self): self.other()

class Bare(Plain):
    def __init__(self): pass
"""

FUNCTIONS = """
class {name}(Counted):
    def at_end(self): assert {result}, "lost"
    def functions(self):
        c = 0
        def one():
{one}
        def other():
{other}
        return one, other, lambda: c
"""
"""The class of a program: the two threads are functions that share a name."""

PLACES = {
    # what is declared, how it is read as v, how v is stored
    "an attribute": ("", "v = self.o.n", "self.o.n = v"),
    "an attribute of a class": ("", "v = self.bare.n", "Plain.n = v"),
    "an attribute of the state": ("", "v = self.o.n", "self.o = Plain(v)"),
    "an attribute of dataclass": ("", "v = self.data.n", "self.data.n = v"),
    "a slot": ("", "v = self.slots.n", "self.slots.n = v"),
    "a property": ("", "v = self.prop.n", "self.prop.n = v"),
    "a namespace": ("", "v = self.space.n", "self.space.n = v"),
    "a method": ("", "v = self.o.method()", "self.o.method = lambda: v"),
    "a class of an object": ("", "v = self.o.method()", "self.o.__class__ = made(v)"),
    "a function of the module": ("", "v = helper()", "THIS.helper = lambda: v"),
    "a class of the module": ("", "v = Holder.n", "THIS.Holder = Plain(v)"),
    "an import of the module": ("", "v = imported.n", "THIS.imported = Plain(v)"),
    "a global": ("global N", "v = value(N)", "N = v"),
    "a cell": ("nonlocal c", "v = value(c)", "c = v"),
    "an item": ("", "v = self.l[0]", "self.l[0] = v"),
    "an entry": ("", "v = self.d['n']", "self.d['n'] = v"),
    "an array": ("", "v = self.a[0]", "self.a[0] = v"),
    "bytes": ("", "v = self.b[0]", "self.b[0] = v"),
}

NAMES = [
    "{0} = v",
    "{0}, w = v, 0",
    "[{0}, *w] = v, 0",
    "w = {0} = v",
    "({0} := v)",
    "[{0} := v for _ in (1,)]",
    "{0} += v - {0}",
    "del {0}; {0} = v",
    "for {0} in [v]: pass",
    "for w, {0} in [(0, v)]: pass",
    "with entered(v) as {0}: pass",
    "with entered((v, 0)) as ({0}, w): pass",
    "match v:\n    case {0}: pass",
    "match v:\n    case int() as {0}: pass",
    "match v:\n    case int({0}): pass",
    "match v:\n    case int({0}) if v > 0: pass",
    "match [v, 0]:\n    case [{0}, *w]: pass",
    "match {{'n': v}}:\n    case {{'n': {0}}}: pass",
    "match Plain(v):\n    case Plain(n={0}): pass",
    "match 0, v:\n    case (1, {0}) | (0, {0}): pass",
    "match [0] * v:\n    case [*{0}]: {0} = len({0})",
    "if v == 1: import number_1 as {0}\nelse: import number_2 as {0}",
    "if v == 1: from number_1 import n as {0}\nelse: from number_2 import n as {0}",
    "def {0}(): return v",
    "class {0}: n = v",
    "@Plain\ndef {0}(): return v\n{0}.n = v",
    "try: raise Number(v)\nexcept Number as {0}: w = {0}\n{0} = w.n",
]
"""Ways to store a name that functions share."""

STORES = {
    "an attribute": [
        "self.o.n = v",
        "self.o.n: int = v",
        "self.o.n, w = v, 0",
        "[self.o.n, *w] = v, 0",
        "w = self.o.n = v",
        "for self.o.n in [v]: pass",
        "[0 for self.o.n in [v]]",
        "[0 for self.o.n, w in [(v, 0)]]",
        "(lambda: self.o)().n += v - self.o.n",
        "w = self.slots.n = self.o.n = v",
        "with entered(v) as self.o.n: pass",
        "with entered((v, 0)) as (self.o.n, w): pass",
        "setattr(self.o, 'n', v)",
        "object.__setattr__(self.o, 'n', v)",
        "type(self.o).__setattr__(self.o, 'n', v)",
        "self.o.__setattr__('n', v)",
        "operator.methodcaller('__setattr__', 'n', v)(self.o)",
        "functools.partial(setattr, self.o, 'n')(v)",
        "list(map(setattr, [self.o], ['n'], [v]))",
        "self.o.__dict__['n'] = v",
        "vars(self.o).update(n=v)",
        "operator.setitem(vars(self.o), 'n', v)",
        "self.o.__dict__ = {'n': v}",
        "self.o.__dict__, w = {'n': v}, 0",
        "for self.o.__dict__ in [{'n': v}]: pass",
        "setattr(self.o, '__dict__', {'n': v})",
        "object.__setattr__(self.o, '__dict__', {'n': v})",
        "self.o.__setattr__('__dict__', {'n': v})",
        "list(map(setattr, [self.o], ['__dict__'], [{'n': v}]))",
        "self.o.__init__(v)",
        "Plain.__init__(self.o, v)",
        "self.o.__dict__.pop('n'); self.o.n = v",
        "exec('self.o.n = v')",
        "exec('o.n = v', {'o': self.o, 'v': v})",
        "eval('setattr(self.o, \"n\", v)')",
        "run = exec; run('o.n = v', {'o': self.o, 'v': v})",
        "copyreg.__newobj__; self.o.__setstate__({'n': v}) if hasattr(self.o, '__setstate__') else self.o.__init__(v)",
        "inspect.getattr_static(self.o, '__dict__').__class__; self.o.n = v",
    ],
    "an attribute of a class": [
        "Plain.n = v",
        "type.__setattr__(Plain, 'n', v)",
        "setattr(Plain, 'n', v)",
        "delattr(Plain, 'n'); Plain.n = v",
        "for Plain.n in [v]: pass",
        "exec('Plain.n = v')",
    ],
    "an attribute of the state": [
        "self.o = Plain(v)",
        "setattr(self, 'o', Plain(v))",
        "self.__dict__['o'] = Plain(v)",
        "self.o = copy.replace(self.o, n=v) if hasattr(copy, 'replace') else Plain(v)",
        "self.o = types.SimpleNamespace(**{**vars(self.o), 'n': v})",
    ],
    "an attribute of dataclass": [
        "self.data.n = v",
        "self.data = dataclasses.replace(self.data, n=v)",
        "self.data.__init__(v)",
    ],
    "a slot": [
        "self.slots.n = v",
        "Slots.n.__set__(self.slots, v)",
        "Slots.__dict__['n'].__set__(self.slots, v)",
        "setattr(self.slots, 'n', v)",
        "del self.slots.n; self.slots.n = v",
    ],
    "a namespace": ["self.space.n = v", "self.space.__init__(n=v)", "vars(self.space)['n'] = v"],
    "a property": [
        "self.prop.n = v",
        "setattr(self.prop, 'n', v)",
        "Prop.n.fset(self.prop, v)",
        "Prop.n.__set__(self.prop, v)",
        "[0 for self.prop.n in [v]]",
    ],
    "a method": [
        "self.o.method = lambda: v",
        "setattr(self.o, 'method', lambda: v)",
        "self.o.method = types.MethodType(lambda self: v, self.o)",
    ],
    "a function of the module": [
        "THIS.helper = lambda: v",
        "setattr(THIS, 'helper', lambda: v)",
        "globals()['helper'] = lambda: v",
        "vars(THIS).update(helper=lambda: v)",
        "import {module} as m; m.helper = lambda: v",
        "(THIS.helper, w), z = (lambda: v, 0), 0",
        "[0 for THIS.helper in [lambda: v]]",
        "def helper_2(): return v\nTHIS.helper = helper_2",
        "del THIS.helper; THIS.helper = lambda: v",
    ],
    "a class of the module": [
        "THIS.Holder = Plain(v)",
        "setattr(THIS, 'Holder', Plain(v))",
        "vars(THIS)['Holder'] = Plain(v)",
    ],
    "an import of the module": [
        "THIS.imported = Plain(v)",
        "setattr(THIS, 'imported', Plain(v))",
        "globals().update(imported=Plain(v))",
    ],
    "a class of an object": [
        "self.o.__class__ = made(v)",
        "setattr(self.o, '__class__', made(v))",
        "object.__setattr__(self.o, '__class__', made(v))",
    ],
    "a global": [
        *(way.format("N") for way in NAMES),
        "exec('global N; N = v')",
        "exec('global N; N = %d' % v)",
        "exec('N = v', globals(), {'v': v}); globals()['N'] = v",
        "exec('N = %d' % v, globals())",
        "exec(compile('N = %d' % v, 'made', 'exec'), globals())",
        "run = exec; run('N = %d' % v, globals())",
        "eval('globals().update(N=v)')",
        "globals()['N'] = v",
        "globals().update(N=v)",
        "g = globals; g()['N'] = v",
        "g = globals; g().update(N=v)",
        "inspect.currentframe().f_globals['N'] = v",
        "sys._getframe().f_globals['N'] = v",
        "(lambda: 0).__globals__['N'] = v",
        "THIS.N = v",
        "setattr(THIS, 'N', v)",
        "THIS.__dict__['N'] = v",
        "vars(THIS)['N'] = v",
        "sys.modules[__name__].N = v",
        "importlib.import_module(__name__).N = v",
        "__import__(__name__).N = v",
    ],
    "a cell": [
        *(way.format("c") for way in NAMES),
        "cell(self.closed).cell_contents = v",
        "setattr(cell(self.closed), 'cell_contents', v)",
        "cell(self.closed).cell_contents += v - c",
        "w = cell(self.closed); del w.cell_contents; w.cell_contents = v",
        "w = c = z = v",
        "self.one.__closure__[self.one.__code__.co_freevars.index('c')].cell_contents = v",
    ],
    "an item": [
        "self.l[0] = v",
        "self.l[0], w = v, 0",
        "self.l[:] = [v]",
        "self.l.__setitem__(0, v)",
        "list.__setitem__(self.l, 0, v)",
        "operator.setitem(self.l, 0, v)",
        "for self.l[0] in [v]: pass",
        "[0 for self.l[0] in [v]]",
        "with entered(v) as self.l[0]: pass",
        "self.l.clear(); self.l.append(v)",
        "del self.l[0]; self.l.append(v)",
        "self.l += [v]; self.l.pop(0)",
        "self.l.__init__([v])",
        "exec('self.l[0] = v')",
        "functools.partial(operator.setitem, self.l, 0)(v)",
        "list(map(self.l.__setitem__, [0], [v]))",
        "put = self.l.__setitem__; put(0, v)",
    ],
    "an entry": [
        "self.d['n'] = v",
        "self.d.update(n=v)",
        "self.d |= {'n': v}",
        "self.d.pop('n'); self.d.setdefault('n', v)",
        "self.d.__setitem__('n', v)",
        "for self.d['n'] in [v]: pass",
        "del self.d['n']; self.d['n'] = v",
    ],
    "an array": ["self.a[0] = v", "self.a.pop(); self.a.append(v)", "memoryview(self.a)[0] = v"],
    "bytes": ["self.b[0] = v", "self.b[:] = bytes([v])", "memoryview(self.b)[0] = v"],
}

READS = {
    "an attribute": [
        "v = self.o.n",
        "v = getattr(self.o, 'n')",
        "v = getattr(self.o, 'n', 7)",
        "v = object.__getattribute__(self.o, 'n')",
        "v = type(self.o).__getattribute__(self.o, 'n')",
        "v = self.o.__getattribute__('n')",
        "v = self.o.__dict__['n']",
        "v = {**vars(self.o)}['n']",
        "v = dict(**vars(self.o))['n']",
        "v = operator.attrgetter('n')(self.o)",
        "v = list(map(operator.attrgetter('n'), [self.o]))[0]",
        "v = [*map(getattr, [self.o], ['n'])][0]",
        "match self.o:\n    case Plain(n=v): pass",
        "match self.o:\n    case Plain(v): pass",
        "match self.o:\n    case Plain(n=0): v = 0\n    case Plain(n=1): v = 1\n    case _: v = 2",
        "match [self.o]:\n    case [Plain(v)]: pass",
        "match {'o': self.o}:\n    case {'o': Plain(n=v)}: pass",
        "match self:\n    case Counted(o=Plain(n=v)): pass",
        "match 0:\n    case self.o.n: v = 0\n    case _: v = self.o.n",
        "match {n: n for n in range(9)}:\n    case {self.o.n: v}: pass",
        "match [{n: n for n in range(9)}]:\n    case [{self.o.n: v}]: pass",
        "v = 0 if 0 <= self.o.n < 1 else 1",
        "v = [n for n in range(9) if n <= self.o.n < n + 1][0]",
        "v = copy.copy(self.o).n",
        "v = copy.deepcopy(self.o).n",
        "v = pickle.loads(pickle.dumps(self.o)).n",
        "v = int('{0.n}'.format(self.o))",
        "v = int('{o.n}'.format(o=self.o))",
        "v = int('{0.o.n}'.format(self))",
        "v = int('{o.n}'.format_map({'o': self.o}))",
        "v = int(f'{self.o.n}')",
        "v = int(f'{self.o.n!r:>3}')",
        "v = int('%(n)s' % vars(self.o))",
        "v = int('%s' % self.o.n)",
        "v = int(string.Formatter().format('{0.n}', self.o))",
        "v = int(string.Template('$n').substitute(vars(self.o)))",
        "v = dict(inspect.getmembers(self.o))['n']",
        "v = inspect.getattr_static(self.o, 'n')",
        "v = self.o.__reduce_ex__(2)[2]['n']",
        "v = self.o.__getstate__()['n']",
        "v = json.loads(json.dumps(vars(self.o)))['n']",
        "v = json.loads(json.dumps(self.o, default=vars))['n']",
        "v = eval('self.o.n')",
        "w = {}; exec('v = o.n', {'o': self.o}, w); v = w['v']",
        "look = eval; v = look('o.n', {'o': self.o})",
        "v = (lambda o=self.o: o.n)()",
        "v = [x.n for x in [self.o]][0]",
        "v = next(x.n for x in [self.o])",
        "v = sorted([self.o], key=lambda o: o.n)[0].n",
        "v = self.o.n if self.o.n else 0",
        "v = max(self.o.n, 0)",
    ],
    "an attribute of a class": [
        "v = self.bare.n",
        "v = Plain.n",
        "v = type(self.bare).n",
        "v = getattr(self.bare, 'n')",
        "v = Plain.__dict__['n']",
        "v = inspect.getattr_static(self.bare, 'n')",
        "match self.bare:\n    case Plain(v): pass",
        "match 0:\n    case Plain.n: v = 0\n    case _: v = Plain.n",
        "v = int('{0.n}'.format(self.bare))",
        "v = super(Bare, self.bare).n",
    ],
    "an attribute of dataclass": [
        "v = self.data.n",
        "v = dataclasses.asdict(self.data)['n']",
        "v = dataclasses.astuple(self.data)[0]",
        "v = dataclasses.replace(self.data).n",
        "v = 0 if self.data == Data(0) else 1",
        "v = 1 if self.data > Data(0) else 0",
        "v = int(repr(self.data)[-2])",
        "v = int(f'{self.data}'[-2])",
        "v = [Data(0), Data(1), Data(2)].index(self.data)",
        "match self.data:\n    case Data(v): pass",
    ],
    "a function of the module": [
        "v = helper()",
        "v = THIS.helper()",
        "w = helper; v = w()",
        "v = [helper() for _ in (1,)][0]",
        "v = (lambda: helper())()",
        "v = (lambda w=helper: w())()",
        "v = list(map(lambda _: helper(), (1,)))[0]",
        "class w:\n    def helper(self): return helper()\nv = w().helper()",
        "class w:\n    n = helper()\nv = w.n",
        "def w(n=helper()): return n\nv = w()",
        "from {module} import helper as w; v = w()",
        "v = functools.partial(helper)()",
        "v = globals()['helper']()",
        "v = functools.reduce(lambda n, w: n + w(), [helper], 0)",
        "v = int(f'{helper()}')",
    ],
    "a class of the module": [
        "v = Holder.n",
        "v = getattr(Holder, 'n')",
        "v = operator.attrgetter('n')(Holder)",
        "v = max(Holder.n, 0)",
    ],
    "an import of the module": ["v = imported.n", "v = getattr(imported, 'n')", "w = imported; v = w.n"],
    "a slot": [
        "v = self.slots.n",
        "v = Slots.n.__get__(self.slots)",
        "v = Slots.__dict__['n'].__get__(self.slots, Slots)",
        "v = copy.copy(self.slots).n",
        "v = pickle.loads(pickle.dumps(self.slots)).n",
        "v = self.slots.__getstate__()[1]['n']",
    ],
    "a property": [
        "v = self.prop.n",
        "v = Prop.n.fget(self.prop)",
        "v = Prop.n.__get__(self.prop)",
        "v = operator.attrgetter('n')(self.prop)",
        "match self.prop:\n    case Prop(n=v): pass",
        "v = int('{0.n}'.format(self.prop))",
    ],
    "a namespace": [
        "v = self.space.n",
        "v = int(repr(self.space)[-2])",
        "v = 0 if self.space == types.SimpleNamespace(n=0) else 1",
        "v = vars(self.space)['n']",
        "v = copy.copy(self.space).n",
    ],
    "a global": [
        "v = N",
        "v = globals()['N']",
        "v = dict(globals())['N']",
        "g = globals; v = g()['N']",
        "v = THIS.N",
        "v = sys.modules[__name__].N",
        "v = __import__(__name__).N",
        "v = importlib.import_module(__name__).N",
        "v = eval('N')",
        "w = {}; exec('v = N', globals(), w); v = w['v']",
        "v = int(f'{N}')",
        "v = int('{N}'.format_map(globals()))",
        "v = (lambda: N)()",
        "v = (lambda n=N: n)()",
        "v = [N for _ in (1,)][0]",
        "v = next(N for _ in (1,))",
        "match 0:\n    case THIS.N: v = 0\n    case _: v = N",
        "from {module} import N as v",
        "import {module} as m; v = m.N",
        "v = sys._getframe().f_globals['N']",
        "class w: n = N\nv = w.n",
        "def w(n=N): return n\nv = w()",
        "v = inspect.getmembers(THIS, lambda item: item is N and True)[0][1]",
        "v = N if N else 0",
        "v = N.__index__()",
    ],
    "a cell": [
        "v = c",
        "v = eval('c')",
        "v = (lambda: c)()",
        "v = [c for _ in (1,)][0]",
        "v = cell(self.closed).cell_contents",
        "v = inspect.getclosurevars(self.closed).nonlocals['c']",
        "v = locals()['c']",
        "v = vars()['c']",
        "v = int(f'{c}')",
        "v = self.closed()",
    ],
    "an item": [
        "v = self.l[0]",
        "v = operator.getitem(self.l, 0)",
        "v = operator.itemgetter(0)(self.l)",
        "v = self.l.__getitem__(0)",
        "v = list.__getitem__(self.l, 0)",
        "match self.l:\n    case [v]: pass",
        "match self.l:\n    case [*w]: v = w[0]",
        "match self.l:\n    case [0]: v = 0\n    case _: v = self.l[0]",
        "match self:\n    case Counted(l=[v]): pass",
        "match [self.l]:\n    case [[v]]: pass",
        "v, = self.l",
        "[v, *w] = self.l",
        "v = [*self.l][0]",
        "v = (lambda *a: a[0])(*self.l)",
        "v = next(iter(self.l))",
        "v = copy.copy(self.l)[0]",
        "v = copy.deepcopy(self.l)[0]",
        "v = int('{0[0]}'.format(self.l))",
        "v = int(f'{self.l}'[1])",
        "v = int(f'{self.l[0]}')",
        "v = int('[%d]'[1:3] % tuple(self.l))",
        "v = int(str(self.l)[1])",
        "v = json.loads(json.dumps(self.l))[0]",
        "v = sum(self.l)",
        "v = max(self.l)",
        "v = sorted(self.l)[0]",
        "v = self.l.copy()[0]",
        "v = self.l[:][0]",
        "v = [x for x in self.l][0]",
        "for v in self.l: pass",
        "for _, v in enumerate(self.l): pass",
        "for v, in zip(self.l): pass",
        "v = list(reversed(self.l))[0]",
        "v = [0, 1, 2].index(*self.l)",
        "v = 0 if 0 in self.l else 1",
        "v = [n for n in range(9) if n in self.l in [[n]]][0]",
        "v = 0 if self.l == [0] else 1",
        "v = functools.reduce(operator.add, self.l)",
        "v = eval('self.l[0]')",
        "v = pickle.loads(pickle.dumps(self.l))[0]",
        "v = int(','.join(map(str, self.l)))",
        "v = collections.deque(self.l)[0]",
        "v = (self.l + [])[0]",
        "v = (self.l * 1)[0]",
    ],
    "an entry": [
        "v = self.d['n']",
        "v = self.d.get('n')",
        "match self.d:\n    case {'n': v}: pass",
        "match self.d:\n    case {**w}: v = w['n']",
        "match self:\n    case Counted(d={'n': v}): pass",
        "v = {**self.d}['n']",
        "v = (lambda n: n)(**self.d)",
        "v = int('{0[n]}'.format(self.d))",
        "v = int('{n}'.format(**self.d))",
        "v = int('{n}'.format_map(self.d))",
        "v = int('%(n)d' % self.d)",
        "v = list(self.d.values())[0]",
        "(_, v), = self.d.items()",
        "v = [value for value in self.d.values()][0]",
        "v = (self.d | {})['n']",
        "v = collections.ChainMap(self.d)['n']",
    ],
    "an array": [
        "v = self.a[0]",
        "v = memoryview(self.a)[0]",
        "v = self.a.tolist()[0]",
        "match list(self.a):\n    case [v]: pass",
    ],
    "bytes": [
        "v = self.b[0]",
        "v = bytes(self.b)[0]",
        "v = int.from_bytes(self.b, 'big')",
        "v = memoryview(self.b)[0]",
    ],
}

RESULTS = {
    "an attribute": "self.o.n",
    "an attribute of a class": "Plain.n",
    "an attribute of the state": "self.o.n",
    "an attribute of dataclass": "self.data.n",
    "a slot": "self.slots.n",
    "a property": "self.prop.n",
    "a namespace": "self.space.n",
    "a method": "self.o.method()",
    "a class of an object": "self.o.method()",
    "a function of the module": "helper()",
    "a class of the module": "Holder.n",
    "an import of the module": "imported.n",
    "a global": "value(N)",
    "a cell": "value(self.closed())",
    "an item": "self.l[0]",
    "an entry": "self.d['n']",
    "an array": "self.a[0]",
    "bytes": "self.b[0]",
}


def body(place: str, read: str, store: str) -> str:
    """What one thread does."""
    declared = PLACES[place][0]
    return "\n".join(line for line in (declared, *read.splitlines(), "v = v + 1", *store.splitlines()) if line)


def looking(place: str, read: str) -> str:
    """What a thread does that reads twice, and expects to read the same."""
    declared = PLACES[place][0]
    lines = [declared, *read.splitlines(), "before = v", *read.splitlines(), "assert v == before, 'another'"]
    return "\n".join(line for line in lines if line)


def cases() -> dict[str, tuple[str, str, str]]:
    """For each way: the place, what one thread does in this way, and what the other does in the usual one."""
    found = {}
    for place, (_, read, store) in PLACES.items():
        usual = body(place, read, store)
        for way in READS.get(place, ()):
            found[f"{place}, read: {way}"] = (place, body(place, way, store), usual)
            found[f"{place}, read twice: {way}"] = (place, looking(place, way), usual)
        for way in STORES.get(place, ()):
            found[f"{place}, stored: {way}"] = (place, body(place, read, way), usual)
    return found


CASES = cases()
BY_DAY = by_day(3, CASES)
MADE = itertools.count()


def module_of(folder: Path, case: str) -> Any:
    """The module with the programs of a case: this way beside the usual one, the same with a lock, twice this way."""
    place, way, usual = CASES[case]
    source = HEAD
    name = f"every_way_{next(MADE)}"

    def indented(text: str, by: int) -> str:
        return "".join(f"{' ' * by}{line}\n" for line in text.replace("{module}", name).splitlines())

    def locked(text: str) -> str:
        declared, lines = PLACES[place][0], text.splitlines()
        first = [declared] if declared else []
        return "\n".join([*first, "with self.lock:", *(f"    {line}" for line in lines[len(first) :])])

    twice = ", read twice:" in case
    result = f"{RESULTS[place]} == {1 if twice else 2}"
    for kind, one, other in (("Beside", way, usual), ("Locked", locked(way), locked(usual)), ("Twice", way, way)):
        if not (twice and kind == "Twice"):  # there is no change
            given = {"one": indented(one, 12), "other": indented(other, 12)}
            source += FUNCTIONS.format(name=kind, result=result, **given)
    file = folder / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_kind_of_place_is_read_and_stored_by_day() -> None:
    kinds = {case.partition(": ")[0] for case in BY_DAY}
    assert kinds == {case.partition(": ")[0] for case in CASES}


@pytest.mark.parametrize("case", BY_DAY)
def test_a_lost_update_is_found_or_named(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        module = ModuleType(f"number_{number}")
        module.n = number  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    module = module_of(tmp_path, case)
    for program in (module.Beside, getattr(module, "Twice", module.Beside)):
        result = explore(program, strategy="dpor", schedules=300)
        assert result.failure is not None or result.not_looked_into
    result = explore(module.Locked, strategy="dpor", schedules=300)
    assert result.holds, result.failure and result.failure.message
    del sys.modules[module.__name__]


CELLS = [
    "N = 0\ndef reset():\n    global N\n    N = 0\ndef put(value):\n    global N\n    N = value\n",
    "def get():\n    return N\n",
    """
class Twice:
    def __init__(self): reset()
    def actor_a(self):
        before = get()
        assert get() == before, "another"
    def actor_b(self): put(1)
""",
]


def test_a_name_that_another_cell_of_a_notebook_assigns_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(f"cells_{next(MADE)}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, source in enumerate(CELLS):
        name = f"<cell {number} of {module.__name__}>"
        lines = source.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, name, (len(source), None, lines, name))
        exec(compile(source, name, "exec"), vars(module))
    failure = explore(vars(module)["Twice"], strategy="dpor").failure
    assert failure is not None
    assert "another" in failure.message


class Matches:
    """What a class in a pattern is found by changes meanwhile."""

    cls: Any

    def __init__(self) -> None:
        global Named
        Named = self.cls = int

    def matches(self) -> bool:
        raise NotImplementedError

    def actor_a(self) -> None:
        assert self.matches() == self.matches(), "another"

    def actor_b(self) -> None:
        global Named
        Named = self.cls = str


Named: Any


class MatchesByName(Matches):
    def matches(self) -> bool:
        match 1:
            case Named():
                return True
        return False


class MatchesByAttribute(Matches):
    def matches(self) -> bool:
        match 1:
            case self.cls():
                return True
        return False


@pytest.mark.parametrize("program", [MatchesByName, MatchesByAttribute])
def test_a_class_in_a_pattern_may_be_another(program: Any) -> None:
    result = explore(program, strategy="dpor")
    assert result.failure is not None or result.not_looked_into


class Compares:
    def __init__(self) -> None:
        self.one, self.two, self.three = [0], [1], [2]

    def actor_a(self) -> None:
        self.seen = self.one < self.two < self.three

    def actor_b(self) -> None:
        for items in (self.two, self.one, self.three):
            items[0] += 3


class ComparesInside(Compares):
    def actor_a(self) -> None:
        self.seen = bool([True for _ in (1,) if self.one < self.two < self.three])


class ComparesPairs(Compares):
    def actor_a(self) -> None:
        self.seen = self.one < self.two and self.two < self.three


@pytest.mark.parametrize("strategy", ["bounded", "dpor"])
def test_a_chain_of_comparisons_has_a_point_for_each_pair_wherever_it_stands(strategy: Any) -> None:
    found = [
        explore(program, strategy=strategy, schedules=20_000).schedules
        for program in (Compares, ComparesInside, ComparesPairs)
    ]
    assert len(set(found)) == 1, found


ANOTHER = """
def helper(): return 0
def call(): return helper(), len([])
def reset(): pass
"""
REPLACES = """
import builtins
import another
import another as renamed
real = another.helper, len

class Replaces:
    def __init__(self): another.helper = real[0]; vars(another).pop("len", None)
    def actor_a(self):
        before = another.call()
        assert another.call() == before, "another"

class ByName(Replaces):
    def actor_b(self): another.helper = lambda: 1

class ByAnotherName(Replaces):
    def actor_b(self): renamed.helper = lambda: 1

class ByString(Replaces):
    def actor_b(self): setattr(another, "helper", lambda: 1)

class OfABuiltin(Replaces):
    def actor_b(self): another.len = lambda _: 1

class OfABuiltinByString(Replaces):
    def actor_b(self): setattr(another, "len", lambda _: 1)

class OfAllModules(Replaces):
    def actor_b(self):
        builtins.len = lambda _: 1
        builtins.len = real[1]
"""


@pytest.mark.parametrize(
    "name", ["ByName", "ByAnotherName", "ByString", "OfABuiltin", "OfABuiltinByString", "OfAllModules"]
)
def test_a_function_that_another_module_replaces_is_shared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {"another": ANOTHER, f"replaces_{next(MADE)}": REPLACES}
    for module, source in modules.items():
        (tmp_path / f"{module}.py").write_text(source)
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    result = explore(getattr(importlib.import_module(module), name), strategy="dpor")
    assert result.failure is not None or result.not_looked_into
    assert result.failure is not None or name.startswith("Of")
