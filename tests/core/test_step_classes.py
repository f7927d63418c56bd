"""Steps that others write: what can't be fused is refused when its class is defined; the rest does what it says.

The classes are text, so that there can be any number of them; each text is a module of its own, whose lines
`inspect` finds.
"""

from __future__ import annotations

import itertools
import linecache
import os
import random
import subprocess
import sys
import textwrap
from bdb import Bdb
from types import FrameType, ModuleType
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sinks import Sink

from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime._core.fusion import fuse, reading
from reactive_runtime._core.fusion.step import Step

HEAD = "from reactive_runtime._core.fusion.step import STOP, Step\n"
_numbers = itertools.count()


def module_of(text: str, *, registered: bool = True) -> ModuleType:
    """The text as a module."""
    name = f"steps_{next(_numbers)}"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = ModuleType(name)
    if registered:
        sys.modules[name] = module
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def signals(flow: Flow[Any], demand: int) -> list[Any]:
    """All signals, errors by their type; `demand` is asked for again and again."""
    sink = Sink(demand)
    flow.subscribe(sink)
    for _ in range(5_000):
        if sink.ended.is_set():
            break
        sink.subscription.request(demand)
    told = sink.wait().signals
    return [
        (kind, *(type(item).__name__ if isinstance(item, Exception) else item for item in rest)) for kind, *rest in told
    ]


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED = {
    "a lambda that reuses a name": (
        "def on_next(self, element):\n    plus = lambda element: element + 1\n    yield plus(element)",
        2,
        "reuses the name `element`",
    ),
    "a lambda that reads what changes": (
        "def on_next(self, element):\n    later = lambda: element\n    element = 7\n    yield later()",
        2,
        "changes `element`",
    ),
    "a generator expression that reads what changes": (
        "def on_next(self, element):\n    for n in range(2):\n        yield (n for _ in range(2))",
        3,
        "changes `n`",
    ),
    "a function inside": (
        "def on_next(self, element):\n    def twice():\n        return element * 2\n    yield twice()",
        2,
        "function of its own, `twice`",
    ),
    "a class inside": (
        "def on_next(self, element):\n    class A:\n        pass\n    yield A",
        2,
        "class of its own, `A`",
    ),
    "super": (
        "def on_next(self, element):\n    for it in super().on_next(element):\n        yield it",
        2,
        r"super\(\)",
    ),
    "an attribute that is first assigned": (
        "def on_next(self, element):\n    self.before = element\n    yield self.before",
        2,
        "first to assign `self.before`",
    ),
    "an attribute that `on_complete` is the first to assign": (
        "def on_next(self, element):\n    yield element\ndef on_complete(self):\n"
        "    self.over = 1\n    yield self.over",
        4,
        "first to assign `self.over`",
    ),
    "setattr": (
        "n = 0\ndef on_next(self, element):\n    setattr(self, 'n', element)\n    yield self.n",
        3,
        "hands out `self`",
    ),
    "its dict": (
        "n = 0\ndef on_next(self, element):\n    self.__dict__['n'] = 1\n    yield self.n",
        3,
        "hands out `self`",
    ),
    "a helper that is given self": (
        "n = 0\ndef on_next(self, element):\n    HELPER.bump(self)\n    yield self.n",
        3,
        "hands out `self`",
    ),
    "a helper that got self at the beginning": (
        "n = 0\ndef reset(self):\n    self.helper = HELPER(self)\ndef on_next(self, element):\n    yield self.n",
        3,
        "hands out `self`",
    ),
    "self under another name": ("def on_next(self, element):\n    me = self\n    yield me", 2, "hands out `self`"),
    "another self": ("def on_next(self, element):\n    self = element\n    yield 1", 2, "hands out `self`"),
    "a global": (
        "def on_next(self, element):\n    global N\n    N = element\n    yield N",
        2,
        "assigns N of the scope",
    ),
    "an import": ("def on_next(self, element):\n    import os\n    yield os.name", 2, "imports"),
    "locals": ("def on_next(self, element):\n    yield locals()", 2, r"uses locals\(\)"),
    "yield as an expression": ("def on_next(self, element):\n    sent = yield element", 2, "what `yield` returns"),
    "yield None": ("def on_next(self, element):\n    yield", 2, "yields None"),
    "yield from": ("def on_next(self, element):\n    yield from element", 2, "yield from"),
    "yield inside with": ("def on_next(self, element):\n    with LOCK:\n        yield element", 2, "inside `with`"),
    "yield inside try": (
        "def on_next(self, element):\n    try:\n        yield 1\n    except E:\n        pass",
        2,
        "`try`",
    ),
    "return": ("def on_next(self, element):\n    if element:\n        return\n    yield element", 3, "other than STOP"),
    "another STOP": ("def on_next(self, element):\n    STOP = 1\n    yield 1\n    return None", 4, "other than STOP"),
    "continue": ("def on_next(self, element):\n    for it in element:\n        continue\n    yield 1", 3, "continue"),
    "a coroutine": ("async def on_next(self, element):\n    pass", 1, "coroutine"),
    "a decorator": ("@staticmethod\ndef on_next(self, element):\n    yield element", 1, "decorated"),
    "another parameter": ("def on_next(self, element, n=1):\n    yield element", 1, r"parameters \(self, element\)"),
    "no method": ("on_next = print", 0, "not a method"),
    "a lambda as the method": ("on_next = lambda self, element: iter(())", 1, "not a method"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fused_is_refused_when_it_is_defined(name: str) -> None:
    body, line, reason = REFUSED[name]
    text = f"{HEAD}class Other(Step):\n{textwrap.indent(body, '    ')}\n"
    with pytest.raises(SyntaxError, match=rf"^Other\.(on_next|on_complete|reset) .*{reason}") as caught:
        module_of(text)
    if line:
        assert caught.value.lineno == line + 2  # of the file: so that an editor finds it
        assert caught.value.text == text.splitlines(keepends=True)[line + 1]


def test_a_variable_of_the_function_around_is_refused() -> None:
    factor = 3
    with pytest.raises(SyntaxError, match=r"on_next uses `factor`, a variable of the function around the class"):

        class Times(Step[int, int]):
            def on_next(self, element: int) -> Any:
                yield element * factor


def test_what_a_base_has_is_refused_with_it() -> None:
    """The class that is defined may put together what each alone is right."""
    with pytest.raises(SyntaxError, match=r"Both\.on_next uses vars\(\)"):
        module_of(
            f"{HEAD}class Other:\n    def on_next(self, element):\n        yield repr, vars(self)\n"
            "class Both(Other, Step):\n    pass\n"
        )


def test_the_steps_of_the_package_can_be_fused() -> None:
    """They are not read when they are imported, which would take time."""
    kinds = [kind for kind in _all_of(Step) if kind.__module__.startswith("reactive_runtime")]
    assert len(kinds) > 40
    for kind in kinds:
        reading.refuse(kind)


def _all_of(kind: type[Any]) -> list[type[Any]]:
    return [item for sub in kind.__subclasses__() for item in (sub, *_all_of(sub))]


# -- what is not refused, and used to differ ---------------------------------------------------------------------------

KEPT = {
    "a comprehension that reuses a name": (
        "def on_next(self, element):\n    yield [element for element in (element, 1)], element"
    ),
    "a comprehension with the name of a global": (
        "def on_next(self, element):\n    yield [LIMIT for LIMIT in (1, 2)], LIMIT"
    ),
    "one element of an iterator": (
        "def on_next(self, element):\n    for one in iter((element, 9)):\n        break\n    yield one"
    ),
    "a lambda": "def on_next(self, element):\n    yield max((1, 2, 3), key=lambda n: -abs(n - element))",
    "lambdas for later": "def on_next(self, element):\n    yield lambda: element * 10",
    "a generator expression": (
        "rate = 2\ndef on_next(self, element):\n    yield sum(n * element * self.rate for n in range(3))"
    ),
    "a generator expression for later": "def on_next(self, element):\n    yield (n + element for n in range(3))",
    "a variable of the element before": (
        "def on_next(self, element):\n    if element == 0:\n        before = 1\n    yield before"
    ),
    "the same in end": (
        "n = 0\ndef on_next(self, element):\n    it = element\n    yield it\ndef on_complete(self):\n    yield it"
    ),
    "a method that writes": (
        "def __init__(self):\n    self.n = 0\ndef bump(self):\n    self.n += 1\n"
        "def on_next(self, element):\n    self.bump()\n    self.n += 10\n    yield self.n"
    ),
    "begin, called again": (
        "def reset(self):\n    self.n = 0\ndef on_next(self, element):\n    self.n += 1\n    yield self.n\n"
        "    if self.n == 2:\n        self.begin()"
    ),
    "a function made at the beginning that writes": (
        "def reset(self):\n    self.n = 0\n    def bump():\n        self.n += 1\n    self.bump = bump\n"
        "def on_next(self, element):\n    self.bump()\n    yield self.n"
    ),
    "a property": (
        "def __init__(self):\n    self.hidden = 0\n"
        "@property\ndef n(self):\n    self.hidden += 1\n    return self.hidden\n"
        "@n.setter\ndef n(self, value):\n    self.hidden = value * 10\n"
        "def on_next(self, element):\n    self.n = element\n    yield self.n, self.n, self.hidden"
    ),
    "__setattr__": (
        "n = 0\ndef __setattr__(self, name, value):\n    object.__setattr__(self, name, value * 2)\n"
        "def on_next(self, element):\n    self.n = element\n    yield self.n"
    ),
    "a private name": (
        "def __init__(self):\n    self.__n = 0\ndef on_next(self, element):\n"
        "    self.__n += element\n    yield self.__n"
    ),
    "a list that grows": (
        "def reset(self):\n    self.seen = []\n"
        "def on_next(self, element):\n    before = self.seen\n    self.seen += (element,)\n"
        "    yield before is self.seen, list(before)"
    ),
    "assigned twice at once": (
        "def reset(self):\n    self.n, self.by = 0, {}\n"
        "def on_next(self, element):\n    self.n = self.by[self.n] = element\n    yield dict(self.by)"
    ),
    "an attribute that is not always there": (
        "def __init__(self):\n    if LIMIT == 0:\n        self.n = 1\n"
        "def on_next(self, element):\n    if element > 99:\n        self.n = 1\n        yield self.n\n    yield element"
    ),
    "a global that changes": "def on_next(self, element):\n    count()\n    yield LIMIT, COUNT",
    "a global that is made later": "def on_next(self, element):\n    yield LATER",
    "an error by name": (
        "def on_next(self, element):\n    try:\n        result = 1 // element\n    except ZeroDivisionError as error:\n"
        "        result = str(error)\n    yield result"
    ),
    "match": (
        "def on_next(self, element):\n    match (element, 1):\n        case (0, *rest):\n            it = rest\n"
        "        case [n, _] as it:\n            it = it, n\n    yield it"
    ),
    "None, now and then": "def on_next(self, element):\n    yield {1: None}.get(element, element)",
    "None at the end": "def on_next(self, element):\n    yield element\ndef on_complete(self):\n    yield {}.get(1)",
    "nothing but STOP": "def on_next(self, element):\n    return STOP",
    "a loop that is not declared": "def on_next(self, element):\n    for n in range(3):\n        yield n, element",
}
AFTER = """
LIMIT, COUNT = 7, 0
def count():
    global COUNT
    COUNT += 1
LATER = 8
"""


def value(item: Any) -> Any:
    """What a lambda returns that has been kept until the end; what a generator gives."""
    if callable(item):
        return item()
    return list(item) if hasattr(item, "send") else item


@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
@pytest.mark.parametrize("registered", [True, False], ids=["a module", "a dict"])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_written_as_ordinary_python_means_the_same_when_it_is_fused(
    name: str, registered: bool, demand: int
) -> None:
    told = []
    for fused in (True, False):
        module = module_of(
            f"{HEAD}class Other(Step):\n    name = 'other'\n{textwrap.indent(KEPT[name], '    ')}\n{AFTER}",
            registered=registered,
        )
        with fuse.fusing(fused):
            flow = Flow.range(5).map(int)._then(module.Other()).filter(lambda item: True)
            told.append([(kind, *map(value, rest)) for kind, *rest in signals(flow, demand)])
    assert told[0] == told[1]
    assert len(told[0]) > 1


def test_an_inner_loop_is_left_when_the_flow_is_cancelled() -> None:
    """Also where the class does not say that it expands."""
    module = module_of(
        f"{HEAD}import itertools\nclass Endless(Step):\n    name = 'endless'\n    def on_next(self, element):\n"
        "        for n in itertools.count():\n            yield n\n"
    )
    sink = Sink(MAX_DEMAND, lambda sink, n: sink.subscription.cancel() if n == 2 else None)
    Flow.just(1)._then(module.Endless()).subscribe(sink)
    assert sink.elements == [0, 1, 2]


# -- at random ---------------------------------------------------------------------------------------------------------

PLACES = ["element", "x", "y", "self.a", "self.b", "self.c"]


SIMPLE = [*PLACES, *PLACES, "0", "1", "2", "None", "COUNT", "count()", "self.sum", "len(self.seen)"]
LARGER = [
    "({0} + {1})", "({0} - {1})", "[{0}, {1}]", "({0} if {1} else x)", "twice({0})", "(y := {0})",
    "sum([x * 2 for x in (1, {0})])", "[z for element in (1, {0}) for z in (element, {1})]",
    "sum(z for z in (1, {0}))", "sum(z + {0} for z in (1, 2))", "(lambda k: k + {0})({1})",
    "(lambda element: element)({0})", "[f() for f in [lambda: {0}]]", "{{x: x for x in (1, {0})}}",
]  # fmt: skip
CALLS = [
    "self.bump()", "self.begin()", "self.seen.append({0})", "self.seen += [{0}]", "del x", "count()",
    "setattr(self, 'a', {0})", "KEPT.append(lambda: {0})", "self.a = self.c = {0}",
]  # fmt: skip


class Writer:
    """Writes steps."""

    def __init__(self, seed: int, most: int) -> None:
        self.rng = random.Random(seed)
        self.most = most

    def expression(self) -> str:
        if self.rng.random() < 0.6:
            return self.rng.choice(SIMPLE)
        return self.rng.choice(LARGER).format(self.expression(), self.expression())

    def block(self, depth: int = 2, *, yields: bool = True) -> list[str]:
        """A few statements, indented."""
        lines: list[str] = []
        for _ in range(self.rng.randint(1, self.most)):
            kinds = ["assign"] * 3 + ["add"] * 2 + ["call", "pair"]
            kinds += ["yield", "yield", "stop"] if yields else []
            kinds += ["if", "if", "for", "try", "match"] if depth else []
            lines += getattr(self, f"write_{self.rng.choice(kinds)}")(depth - 1, yields)
        return [f"    {line}" for line in lines]

    def write_assign(self, depth: int, yields: bool) -> list[str]:
        return [f"{self.rng.choice(PLACES)} = {self.expression()}"]

    def write_add(self, depth: int, yields: bool) -> list[str]:
        return [f"{self.rng.choice(PLACES)} += {self.expression()}"]

    def write_pair(self, depth: int, yields: bool) -> list[str]:
        return [f"{self.rng.choice(PLACES)}, x = {self.expression()}, {self.expression()}"]

    def write_call(self, depth: int, yields: bool) -> list[str]:
        return [self.rng.choice(CALLS).format(self.expression())]

    def write_yield(self, depth: int, yields: bool) -> list[str]:
        return [f"yield {self.expression()}"]

    def write_stop(self, depth: int, yields: bool) -> list[str]:
        return [f"if {self.expression()} == 3:", "    return STOP"]

    def write_if(self, depth: int, yields: bool) -> list[str]:
        lines = [f"if {self.expression()}:", *self.block(depth, yields=yields)]
        return [*lines, "else:", *self.block(depth, yields=yields)] if self.rng.random() < 0.5 else lines

    def write_for(self, depth: int, yields: bool) -> list[str]:
        return [f"for {self.rng.choice(PLACES)} in (1, {self.expression()}):", *self.block(depth, yields=yields)]

    def write_try(self, depth: int, yields: bool) -> list[str]:
        return ["try:", *self.block(depth, yields=False), "except TypeError as x:", *self.block(depth, yields=False)]

    def write_match(self, depth: int, yields: bool) -> list[str]:
        nothing, something = (["    " + line for line in self.block(depth, yields=yields)] for _ in range(2))
        return [f"match {self.expression()}:", "    case 0 | None:", *nothing, "    case x:", *something]

    def step(self) -> str:
        """The body of a class."""
        lines = [
            "name = 'random'",
            "c = 0",
            "def __init__(self):",
            "    self.a = 0",
            "def reset(self):",
            "    self.b, self.seen = 1, []",
            "def bump(self):",
            f"    {self.rng.choice(['self.a', 'self.b', 'self.d', 'self.__class__.c'])} = 5",
            "@property",
            "def sum(self):",
            f"    {self.rng.choice(['pass', 'self.c = 4'])}",
            "    return self.b",
            "def on_next(self, element):",
            *self.block(),
        ]
        if self.rng.random() < 0.5:
            lines += ["def on_complete(self):", *self.block(), "    yield 9"]
        return "\n".join(lines)


MODULE = """
COUNT, KEPT = 0, []
def count():
    global COUNT
    COUNT += 1
    return COUNT
def twice(it):
    return it * 2
"""


@settings(max_examples=500)
@given(
    seed=st.integers(0, 2**32),
    most=st.integers(1, 4),
    steps=st.integers(1, 2),
    registered=st.booleans(),
    demand=st.sampled_from([1, 3, MAX_DEMAND]),
)
def test_steps_written_at_random_mean_the_same_when_they_are_fused(
    seed: int, most: int, steps: int, registered: bool, demand: int
) -> None:
    """Or are refused when they are defined, with a line of theirs."""
    writer = Writer(seed, most)
    parts = [f"class Random{n}(Step):\n{textwrap.indent(writer.step(), '    ')}\n" for n in range(steps)]
    text = "\n".join([HEAD, MODULE, *parts])
    try:
        compile(text, "<text>", "exec")
    except SyntaxError:  # `:=` where Python allows none
        event("no Python")
        return
    told = []
    for fused in (True, False):
        module = _accepted(text, registered=registered)
        if module is None:
            event("refused")
            return
        with fuse.fusing(fused):
            flow = Flow.range(4).map(lambda n: n * 2)
            for n in range(steps):
                flow = flow._then(getattr(module, f"Random{n}")())
            given = signals(flow.map(lambda item: item), demand)
        told.append((repr(given), [_outcome(item) for item in module.KEPT], module.COUNT))
        sys.modules.pop(module.__name__, None)
    event("the same")
    assert told[0] == told[1], text


def _accepted(text: str, *, registered: bool) -> ModuleType | None:
    """The module, or None where a class of it is refused, with a line of it."""
    try:
        return module_of(text, registered=registered)
    except SyntaxError as refusal:
        line = refusal.lineno
    assert line is not None
    assert text.splitlines()[line - 1].strip()
    return None


def _outcome(function: Any) -> str:
    try:
        return repr(function())
    except Exception as error:
        return type(error).__name__


# -- a debugger --------------------------------------------------------------------------------------------------------

DEBUGGED = f"""{HEAD}
class Plus(Step):
    name = 'plus'
    def on_next(self, element):
        more = element + 1
        yield more
"""


class Stops(Bdb):
    """Notes what it sees at its breakpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def user_line(self, frame: FrameType) -> None:
        if self.break_here(frame):
            self.seen.append(frame.f_locals["element"])
        self.set_continue()


@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
def test_a_breakpoint_in_each_is_hit_where_fusing_is_off(demand: int) -> None:
    module = module_of(DEBUGGED)
    filename = module.Plus.on_next.__code__.co_filename
    debugger = Stops()
    assert debugger.set_break(filename, 6) is None
    sink = Sink(demand, lambda sink, _: sink.subscription.request(1))

    def run() -> None:
        with fuse.fusing(False):
            Flow.range(3)._then(module.Plus()).subscribe(sink)

    debugger.runcall(run)
    assert debugger.seen == [0, 1, 2]
    assert sink.elements == [1, 2, 3]


def test_fusing_is_off_in_a_process_that_says_so() -> None:
    code = (
        "from reactive_runtime import Flow\nimport traceback\n"
        "try: list(Flow.just(0).map(lambda n: 1 // n))\n"
        "except ZeroDivisionError: print('<fused' in traceback.format_exc())"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "REACTIVE_RUNTIME_FUSE": setting},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for setting in ("0", "1")
    ]
    assert told == ["False", "True"]


def test_an_error_says_which_step_it_came_out_of_also_where_fusing_is_off() -> None:
    notes = []
    for fused in (True, False):
        with fuse.fusing(fused), pytest.raises(ZeroDivisionError) as caught:
            list(Flow.range(3).map(str).map(int).map(lambda n: 1 // n).filter(bool))
        notes.append(caught.value.__notes__)
    assert notes[0] == notes[1]
    assert notes[0][0].startswith("in map(lambda), assembled at")
    assert __file__ in notes[0][0]


def test_an_error_of_the_source_names_it_and_no_step_also_where_fusing_is_off() -> None:
    def numbers() -> Any:
        yield 1
        raise OSError("gone")

    for fused in (True, False):
        with fuse.fusing(fused), pytest.raises(OSError, match="gone") as caught:
            list(Flow.from_supplier(numbers).map(str).filter(bool))
        (note,) = caught.value.__notes__
        assert note.startswith("in from_supplier(numbers), assembled at ")
