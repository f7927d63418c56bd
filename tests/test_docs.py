"""What the documentation shows runs, and prints what it says it prints."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reactive_runtime
from reactive_runtime import Flow

MADE = {"files", "found", "lessons", "reference"}
"""Folders of the docs that the build of the site writes."""
PAGES = [
    Path("README.md"),
    *sorted(page for page in Path("docs").rglob("*.md") if page.relative_to("docs").parts[0] not in MADE),
]
EXAMPLE = re.compile(r"```python( continued)?\n(.*?)```\n(?:\n```output\n(.*?)```)?", re.DOTALL)
NEEDED = {"reactive_runtime.spark": pytest.mark.spark, "spark_bridge": pytest.mark.spark, "jvm": pytest.mark.jvm}


def needs(name: str, text: str = "") -> list[pytest.MarkDecorator]:
    """What a module, or an example with these imports, does not go without."""
    imports = "\n".join(re.findall(r"^ *(?:from|import) .*$", text, re.MULTILINE))
    return [mark for part, mark in NEEDED.items() if part in name or part in imports]


def examples(page: Path) -> Iterator[tuple[str, str]]:
    """The code of each example, and its output; one that is continued begins with the code before it."""
    earlier = ("", "")
    for continued, code, output in EXAMPLE.findall(page.read_text()):
        earlier = (f"{earlier[0]}\n{code}", earlier[1] + output) if continued else (code, output)
        yield earlier


EXAMPLES = [
    pytest.param(code, output, id=f"{page.name}-{number}", marks=needs("", code))
    for page in PAGES
    for number, (code, output) in enumerate(examples(page), start=1)
]
MODULES = [
    "reactive_runtime",
    *(
        module.name
        for module in pkgutil.walk_packages(reactive_runtime.__path__, "reactive_runtime.")
        if not module.name.endswith("__main__")
    ),
]


@pytest.mark.timeout(300)  # a session of Spark, or an exhaustive search, beside other tests
@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_an_example_of_the_docs_runs_and_prints_what_is_shown(code: str, output: str, tmp_path: Path) -> None:
    """From a file, as a reader runs it: the explorer, and some errors, look at the source. Nothing is left open."""
    file = tmp_path / "example.py"
    file.write_text(code)
    command = [sys.executable, "-X", "dev", "-W", "error", str(file)]
    done = subprocess.run(command, cwd=Path.cwd(), capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == output
    assert "ResourceWarning" not in done.stderr


@pytest.mark.tools
@pytest.mark.xdist_group("docs")
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_the_examples_of_the_docs_pass_the_type_checkers(checker: str, tmp_path: Path) -> None:
    for example in EXAMPLES:
        name = re.sub(r"\W", "_", str(example.id))
        (tmp_path / f"{name}.py").write_text(str(example.values[0]))
    here = Path.cwd()
    if checker == "mypy":
        config, arguments = "mypy.ini", ["--config-file", "mypy.ini", "."]
        text = f"[mypy]\nstrict = true\nmypy_path = {here}\nexplicit_package_bases = true\n"
    else:
        config, arguments = "pyrightconfig.json", ["--pythonpath", sys.executable]
        text = json.dumps({"include": ["."], "extraPaths": [str(here)], "typeCheckingMode": "standard"})
    (tmp_path / config).write_text(text)
    command = [sys.executable, "-m", checker, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_docs_show_of_a_file_is_in_it() -> None:
    shown = [
        item for page in PAGES for item in re.findall(r"```python from=(\S+)\n(.*?)\n```", page.read_text(), re.DOTALL)
    ]
    assert len(shown) >= 3
    for path, text in shown:
        lines = [line.strip() for line in Path(path).read_text().splitlines()]
        wanted = [line.strip() for line in text.splitlines()]
        assert any(lines[at : at + len(wanted)] == wanted for at in range(len(lines))), (
            f"{path} has no such lines: {text}"
        )


WITH_SPARK = ("reactive_runtime._operators.spark_bridge", "reactive_runtime.spark.")
"""Their examples take the session that the tests of Spark share, and so run with them."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            module,
            marks=[*needs(module), *([pytest.mark.xdist_group("spark")] if module.startswith(WITH_SPARK) else [])],
        )
        for module in MODULES
    ],
)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    """Found in the source: what is exported elsewhere says of itself that it is of another module."""
    module = importlib.import_module(name)
    file = str(module.__file__)
    texts = [node.value for node in ast.walk(ast.parse(Path(file).read_text())) if isinstance(node, ast.Expr)]
    runner = doctest.DocTestRunner()
    for text in texts:
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and ">>>" in text.value:
            example = doctest.DocTestParser().get_doctest(text.value, vars(module).copy(), name, file, text.lineno - 1)
            runner.run(example)
    assert runner.failures == 0


def test_public_docstrings_of_flow_have_an_example() -> None:
    public = [name for name in dir(Flow) if not name.startswith("_")]
    without = [name for name in public if ">>>" not in (getattr(Flow, name).__doc__ or "")]
    assert without == []


@pytest.mark.parametrize("name", [pytest.param(module, marks=needs(module)) for module in MODULES])
def test_all_names_what_there_is(name: str) -> None:
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None)
    if names is None:
        return
    assert list(names) == sorted(names, key=lambda item: (not item.isupper(), not item[0].isupper(), item))
    assert [item for item in names if not hasattr(module, item)] == []


def test_the_links_of_the_docs_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            found = page.parent / target
            made = found.resolve().is_relative_to(Path("docs").resolve()) and MADE & set(found.parts)
            assert made or found.exists(), f"{page}: {target}"  # those that are made are looked at in tests/docs


def test_the_ways_through_the_code_name_what_is_in_each_file() -> None:
    rows = re.findall(r"^\|.+\| `([\w/]+\.py)` \| `(\w+)` \|$", Path("docs/read-the-code.md").read_text(), re.MULTILINE)
    assert len(rows) > 40
    missing = [(file, name) for file, name in rows if not re.search(rf"\b(def|class) {name}\b", Path(file).read_text())]
    assert missing == []


def test_the_glossary_is_short_and_names_what_there_is() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", Path("docs/glossary.md").read_text(), re.MULTILINE)[1:]
    terms = [term for term, _ in rows]
    assert 40 <= len(terms) <= 60
    assert len(set(terms)) == len(terms)
    named = {name for term in terms for name in re.findall(r"\(`(\w+)`\)", term)}
    modules = [file.read_text() for file in Path("reactive_runtime").rglob("*.py")]
    classes = {name for module in modules for name in re.findall(r"^class (\w+)", module, re.MULTILINE)}
    assert named - classes == set()
