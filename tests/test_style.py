"""No page or module has the words that docs/style.md replaces; no module gets more of the sentences it rewrites."""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from pathlib import Path

import pytest

MADE = {"files", "found", "lessons", "reference"}
"""Folders of the docs that the build of the site writes, from what is checked here."""

PAGES = [
    *(Path(name) for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(page for page in Path("docs").rglob("*.md") if page.relative_to("docs").parts[0] not in MADE),
]

MODULES = [
    file
    for folder in ("reactive_runtime", "stress", "examples", "benchmarks", "docs/_site")
    for file in sorted(Path(folder).rglob("*.py"))
]

TESTS = sorted(Path("tests").rglob("*.py"))


@cache
def replaced() -> dict[str, str]:
    """The table of the style page: words, and what to write for them."""
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", Path("docs/style.md").read_text(), re.MULTILINE)
    return {word: better for words, better in rows[2:] for word in words.split(", ")}


@cache
def any_word() -> re.Pattern[str]:
    """Any of the words, on one line or across two."""
    words = "|".join(r"\s+".join(map(re.escape, word.split())) for word in replaced())
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def found(text: str) -> list[str]:
    """Each of the words in a text, with the line it is on and what to write."""
    lines = []
    for match in any_word().finditer(text):
        better = replaced()[" ".join(match[0].lower().split())]
        lines.append(f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: write: {better}")
    return lines


def prose(page: str) -> str:
    """A page without its blocks of code and output, which keep their lines."""
    return re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL)


def test_the_table_has_the_words() -> None:
    assert {"somebody", "nobody", "whoever", "let go", "is told", "leans on", "cries wolf"} <= set(replaced())


@pytest.mark.parametrize(
    "text", ["Nobody waits.", "it is\ntold of it", "They let go.", "the so-manieth", "cries  wolf"]
)
def test_a_word_is_found(text: str) -> None:
    assert len(found(text)) == 1


@pytest.mark.parametrize("text", ["nobodys", "outlet gone", "this told us", "```\nnobody\n```"])
def test_a_part_of_a_word_and_a_block_are_not(text: str) -> None:
    assert found(prose(text)) == []


@pytest.mark.parametrize("page", [item for item in PAGES if item.name != "style.md"], ids=str)
def test_a_page_has_none_of_the_words(page: Path) -> None:
    assert found(prose(page.read_text())) == []


SPAN = re.compile(r"`[^`]*`|\]\([^)]*\)|\b(?:e\.g|i\.e|vs)\.")
"""What may have a full stop that ends no sentence."""

SECOND = re.compile(r"[.!?][\"')\]*]*\s+(?=[A-Z`*\[(\"])")


def crowded(page: str) -> list[str]:
    """The lines of a page that hold more than one sentence, or part of one that goes on below."""
    lines = [SPAN.sub(lambda span: re.sub(r"[.!?]", ",", span[0]), line) for line in prose(page).splitlines()]
    plain = [re.match(r"\s*(?:[-*] |\d+\. )?[\w`*\[(\"'“]", line) is not None for line in lines]
    below = [False] * len(lines)  # whether a line goes on with the paragraph of the line before
    for number in range(1, len(lines)):
        item = re.match(r"\s*(?:[-*] |\d+\. )", lines[number])
        below[number] = plain[number] and plain[number - 1] and item is None
    found = []
    for number, line in enumerate(lines):
        text = re.sub(r"^\s*\d+\. ", "", line)
        if plain[number] and SECOND.search(text):
            found.append(f"line {number + 1} has more than one sentence: {line.strip()[:80]}")
        if below[number] and not re.search(r"[.!?:][\"')\]*”]*$", lines[number - 1].rstrip()):
            found.append(f"line {number} goes on below: {lines[number - 1].strip()[:80]}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_has_one_sentence_a_line(page: Path) -> None:
    assert crowded(page.read_text()) == []


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("One. Two.", 1),
        ("One `a. B` and e.g. this.", 0),
        ("One goes\non.", 1),
        ("- One.\n- Two\n- three", 0),
        ("| A. B |", 0),
        ("See:\nthis.\n\n```\nA. B\n```", 0),
    ],
)
def test_a_line_of_two_sentences_is_found(page: str, lines: int) -> None:
    assert len(crowded(page)) == lines


@pytest.mark.parametrize("file", MODULES, ids=str)
def test_a_module_has_none_of_the_words(file: Path) -> None:
    assert found(file.read_text()) == []


@pytest.mark.parametrize("file", TESTS, ids=str)
def test_a_docstring_of_a_test_has_none_of_the_words(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            where = getattr(node, "name", "the module")
            assert found(ast.get_docstring(node) or "") == [], where


CODE = [
    file
    for folder in ("reactive_runtime", "tests", "stress", "examples", "benchmarks", "docs/_site")
    for file in sorted(Path(folder).rglob("*.py"))
]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_each_target_that_a_page_names_is_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", Path("Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", page.read_text()))
    assert named <= targets


SHAPES = {
    "a clause as the subject": re.compile(
        r"(?:^|(?<=[.!?:;]\s)|(?<=[.!?:;]`\s))[\s>*-]*"
        r"(?:What|Who|Whoever|Where|That (?:it|they|an?|the|no|this|each|one|nothing|there|some|its|all|two|both))\b"
        r"(?:[^.!?]|[.!?](?=\S))*(?:[.!](?!\S)|\Z)"
    ),
    "a passive without an agent": re.compile(r"\b(?:is|are|was|were|be|being|been) (?:looked for|told)\b"),
    "end": re.compile(r"\bcomes? to (?:its|their|an|the) end\b"),
    "by itself": re.compile(r"\bby (?:itself|themselves)\b"),
}
"""The commonest shapes that docs/style.md replaces. A question may begin with "What"."""


def shapes(text: str) -> list[str]:
    """The sentences of a text, of any number of lines, that have one of these shapes."""
    flat = re.sub(r"\s+", " ", text).strip()
    return [match[0].strip()[:80] for shape in SHAPES.values() for match in shape.finditer(flat)]


def texts(source: str) -> list[str]:
    """The comments of a module, lines that follow each other as one, and its strings of more than one word."""
    comments: list[tuple[int, str]] = []
    for number, line in enumerate(source.splitlines()):
        if (match := re.search(r"(?:^ *|  )#:? (.*)", line)) is not None:
            if comments and comments[-1][0] == number - 1:
                comments[-1] = number, f"{comments[-1][1]} {match[1]}"
            else:
                comments.append((number, match[1]))
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    said = [paragraph for text in strings if isinstance(text, str) and " " in text for paragraph in text.split("\n\n")]
    return [text for _, text in comments] + said


@pytest.mark.parametrize(
    "text",
    [
        "What is freed is not closed there.", "Stop. Who hears of it is\nnamed.", "Where names are at home.",
        "That it waits is no fault.", "modules are looked for", "the loop comes to its end", "it ends by itself",
    ],
)  # fmt: skip
def test_a_shape_is_found(text: str) -> None:
    assert len(shapes(text)) == 1


@pytest.mark.parametrize(
    "text", ["What does it cost?", "Say what is freed.", "That holds.", "somewhere. Whatever", "a.Who", "see what"]
)
def test_a_question_and_a_clause_in_its_place_are_not(text: str) -> None:
    assert shapes(text) == []


BASELINE = Path("tests/style_baseline.txt")
"""How many sentences of each page, and of the modules of each folder, still have one of the shapes."""


def shapes_by_place() -> dict[str, list[str]]:
    """The sentences of each page, and of the modules of each folder, that have one of the shapes."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        lines = [line for line in prose(page.read_text()).splitlines() if not line.startswith("#")]
        found[str(page)] = [] if page.name == "style.md" else [shape for line in lines for shape in shapes(line)]
    for file in CODE:
        if file.name != "test_style.py":
            folder = "/".join(file.parts[:2]) if len(file.parts) > 2 else file.parts[0]
            lines = [shape for text in texts(file.read_text()) for shape in shapes(text)]
            found.setdefault(folder, []).extend(f"{file}: {line}" for line in lines)
    return found


def test_no_place_has_more_of_the_shapes_than_before() -> None:
    """WRITE_DOCS=1 writes counts that have become smaller, and no others."""
    found = shapes_by_place()
    before = {place: int(count) for place, count in (row.split() for row in BASELINE.read_text().splitlines())}
    assert {place: lines for place, lines in found.items() if len(lines) > before.get(place, 0)} == {}
    if os.environ.get("WRITE_DOCS"):
        BASELINE.write_text("".join(f"{place} {len(lines)}\n" for place, lines in sorted(found.items()) if lines))


def test_no_variable_is_called_it() -> None:
    found = []
    for file in CODE:
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Name | ast.arg):
                continue
            if (node.id if isinstance(node, ast.Name) else node.arg) == "it":
                found.append(f"{file}:{node.lineno}")
    assert len(CODE) > 300
    assert found == []


FORMER = {
    "bridging": "Spark", "crowd": "ready set", "folding": "aggregating",
    "inbox": "prefetch queue", "lane": "inner subscription", "lanes": "inner subscriptions",
    "outbox": "subscriber buffer", "pacing": "backpressure", "pushing": "creating, emitting",
    "recovering": "error handling", "splitting": "grouping", "standins": "instrumented primitives",
    "travelling": "picklable", "volley": "burst",
}  # fmt: skip
"""Words that names had once, and what the field says for them."""


def words(name: str) -> str:
    """The words of a name, apart: of `by_name` and of `ByName` they are "by name"."""
    return " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)).lower()


@pytest.mark.parametrize(
    ("name", "apart"), [("test_it_is_told", "test it is told"), ("EverybodyDrains", "everybody drains"), ("_X1", "x 1")]
)
def test_the_words_of_a_name(name: str, apart: str) -> None:
    assert words(name) == apart


@pytest.mark.parametrize("file", CODE, ids=str)
def test_a_name_has_none_of_the_words(file: Path) -> None:
    """Of a file, a class, a function, an argument, a variable, an attribute."""
    names = {file.stem}
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                names.add(name)
            case _:
                pass
    apart = {name: words(name) for name in names}
    assert {name: lines for name, text in apart.items() if (lines := found(text))} == {}
    former = {name: FORMER.keys() & set(text.split()) for name, text in apart.items()}
    assert {name: left for name, left in former.items() if left} == {}


OTHERS: dict[str, set[str]] = {
    "of the standard library, which names it so": {
        *(
            "_getframe",
            "_current_frames",
            "_exit",
            "_get_running_loop",
            "_fields",
            "_attributes",
            "_replace",
        ),
        *("_Popen", "_children", "_config", "_parent_name", "_parent_pid"),
        *("_is_owned", "_condition", "_flag", "_PySimpleQueue", "_base", "_args", "_callback", "_log_destroy_pending"),
    },
    "of confluent-kafka: the errors of the client itself": {
        *("_ALL_BROKERS_DOWN", "_AUTHENTICATION", "_AUTO_OFFSET_RESET", "_INVALID_ARG", "_MAX_POLL_EXCEEDED"),
        *("_MSG_TIMED_OUT", "_PARTITION_EOF", "_RESOLVE", "_SSL", "_TIMED_OUT", "_TRANSPORT", "_UNKNOWN_PARTITION"),
        *("_UNKNOWN_TOPIC", "_WAIT_COORD"),
    },
    "of pytest": {"_fixtureinfo", "_request", "_initrequest", "_fillfixtures"},
    "of py4j and PySpark": {"_gateway", "_jdf", "_jsc", "_jsq", "_jvm", "_plan"},
    "of a flow, whose names without an underscore are its users'": {
        *("_source", "_steps", "_run", "_then", "_parts"),
    },
    "of an atomic, for a picture: `get` would be a step of the program": {"_value"},
    "of a verification, whose names without an underscore are its users'": {"_subscribe"},
}
"""Underscores of other objects that the package may use."""

READS_FROM_OUTSIDE = Path("reactive_runtime/live")
"""A look at running flows reads their fields without a lock: a method would take the lock that a stuck thread holds."""


def foreign_underscores(source: str) -> set[str]:
    """Names with an underscore that a module reads of other objects, and that no class of its own has."""
    tree = ast.parse(source)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.attr for node in attributes if _is_self(node.value) and isinstance(node.ctx, ast.Store)}
    own -= _of_protocols(tree)
    return {
        node.attr
        for node in attributes
        if re.match("_[^_]", node.attr) and node.attr not in own and not _is_self(node.value)
    }


def _of_protocols(tree: ast.AST) -> set[str]:
    """Names with an underscore of which a protocol says that another object has them."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    members = [
        member
        for node in classes
        if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
        for member in node.body
    ]
    names = {member.name for member in members if isinstance(member, ast.FunctionDef)}
    return names | {ast.unparse(member.target) for member in members if isinstance(member, ast.AnnAssign)}


def _is_self(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("other._lock", {"_lock"}),
        ("self._lock; super()._lock; other.lock; other.__dict__", set()),
        ("class A:\n    def __init__(self): self._n = 0\n    def more(self, other): return other._n", set()),
        ("class Has(Protocol):\n    _n: int\n    def _go(self): ...\nother._n; other._go()", {"_n", "_go"}),
    ],
)
def test_a_foreign_underscore_is_found(source: str, expected: set[str]) -> None:
    assert foreign_underscores(source) == expected


def test_no_module_reaches_into_the_underscores_of_another() -> None:
    allowed = set().union(*OTHERS.values())
    files = (file for file in Path("reactive_runtime").rglob("*.py") if READS_FROM_OUTSIDE not in file.parents)
    found = {str(file): foreign_underscores(file.read_text()) for file in files}
    assert {file: names - allowed for file, names in found.items() if names - allowed} == {}
    assert allowed - set().union(*found.values()) == set()


def test_a_file_name_stands_for_one_thing() -> None:
    """Beside `__init__` and `__main__`, which Python names."""
    names = [file.name for file in Path("reactive_runtime").rglob("*.py") if not file.name.startswith("__")]
    places = {name: [str(file) for file in Path("reactive_runtime").rglob(name)] for name in names}
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
