"""The start of a process imports what it needs, and no more: the modules are listed, no time is measured."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reactive_runtime
from reactive_runtime.explore import explore
from reactive_runtime.explore._instrument import code_patcher

FLOWS = "reactive_runtime._flow"
OWN = {
    "reactive_runtime",
    "reactive_runtime._spec",
    "reactive_runtime._support",
    "reactive_runtime._support.public_names",
}
HEAVY = ("rich", "pyspark", "numpy", "pyarrow", "pandas", "asyncio", "textual", "jinja2", FLOWS)


def run(code: str, *, hang: float = 60) -> list[str]:
    """The words that a new process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=hang, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_package_imports_its_interfaces_and_typing_only() -> None:
    code = "import sys, __future__, importlib, types, typing\nbefore = set(sys.modules)\nimport reactive_runtime\n"
    assert set(run(f"{code}print(*sys.modules.keys() - before)")) == OWN


@pytest.mark.parametrize("module", ["tck", "hooks", "executors", "testing", "explore", "judging", "report"])
def test_a_module_without_flows_imports_none(module: str) -> None:
    code = f"import sys, reactive_runtime.{module}\nprint({FLOWS!r} in sys.modules)"
    assert run(code) == ["False"]


@pytest.mark.parametrize("command", [[], ["explore"], ["stress"], ["tck"], ["verify"]])
def test_help_imports_no_rich_no_arrow_and_no_flow(command: list[str]) -> None:
    code = (
        f"import sys\nsys.argv = ['reactive-runtime', *{command}, '--help']\n"
        "from reactive_runtime._cli import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code\n"
        f"print('loaded', *(name for name in {HEAVY} if name in sys.modules))"
    )
    words = run(code)
    assert "Usage:" in words
    assert words[words.index("loaded") :] == ["loaded"]


def test_all_public_names_are_there_and_say_their_home() -> None:
    code = "from reactive_runtime import *\nprint(*(f'{name}={globals()[name].__module__}' for name in {names}))"
    names = [name for name in reactive_runtime.__all__ if isinstance(getattr(reactive_runtime, name), type)]
    assert run(code.replace("{names}", repr(names))) == [f"{name}=reactive_runtime" for name in names]
    assert "Flow" in run("import reactive_runtime\nprint(*dir(reactive_runtime))")


def test_a_class_has_its_home_where_an_inner_module_made_it() -> None:
    code = "import reactive_runtime.hot\nfrom reactive_runtime._operators.sources.creating import Emitter\n"
    assert run(f"{code}print(Emitter.__module__)") == ["reactive_runtime"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'reactive_runtime' has no attribute 'Flaw'"):
        getattr(reactive_runtime, "Flaw")  # noqa: B009 - type checkers refuse it
    assert run("import sys, reactive_runtime\nhasattr(reactive_runtime, 'x')\nprint('logging' in sys.modules)") == [
        "False"
    ]


def test_what_was_pickled_imports_flows_where_it_is_loaded() -> None:
    pickled = pickle.dumps([reactive_runtime.Notification("on_next", 1), reactive_runtime.Flow])
    assert run(f"import pickle\nprint(pickle.loads({pickled!r})[1].range(2))") == ["range(2)"]


def test_threads_that_ask_for_flow_at_once_get_one_class() -> None:
    code = """
import sys, threading, reactive_runtime
together, got = threading.Barrier(8), []
def ask():
    together.wait()
    got.append(list(reactive_runtime.Flow.range(2)))
    got.append(reactive_runtime.Flow)
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(got.count([0, 1]), got.count(reactive_runtime.Flow))
"""
    assert run(code) == ["8", "8"]


# -- explorations --------------------------------------------------------------------------------------------------

EXPLORED = """
import sys
from reactive_runtime.explore import explore
{above}
def program():
    seen.append(flows in sys.modules)
    {inside}
flows, seen = {flows!r}, []
result = explore(program, schedules=1)
print(result.failure is None, seen[0])
"""


@pytest.mark.parametrize(
    ("above", "inside", "loaded"),
    [
        ("", "assert True", False),
        ("import reactive_runtime as rr", "assert list(rr.Flow.range(2)) == [0, 1]", True),
        ("", "from reactive_runtime import Flow; assert list(Flow.range(2)) == [0, 1]", True),
        ("from importlib import import_module", "assert import_module('reactive_runtime').Flow", True),
        ("from reactive_runtime import Flow", "assert list(Flow.range(2)) == [0, 1]", True),
    ],
)
def test_flows_are_there_before_a_program_that_has_some_runs(
    above: str, inside: str, loaded: bool, tmp_path: Path
) -> None:
    """Imported while a run goes on, they would get stand-ins for good, and not be looked into."""
    path = tmp_path / "explored.py"
    path.write_text(EXPLORED.format(above=above, inside=inside, flows=FLOWS))
    assert run(f"import runpy\nrunpy.run_path({str(path)!r})") == ["True", str(loaded)]


def test_a_run_that_imports_flows_unseen_is_refused(tmp_path: Path) -> None:
    unseen = """exec("import reactive_runtime as rr; rr.Flow")"""
    path = tmp_path / "explored.py"
    path.write_text(EXPLORED.format(above="", inside=unseen, flows=FLOWS))
    code = f"import runpy\ntry:\n    runpy.run_path({str(path)!r})\nexcept Exception as error:\n    print(error)"
    assert "program imports flows while it is explored: import reactive_runtime.Flow before" in " ".join(run(code))


def test_a_token_is_good_in_a_process_that_imports_more(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(
        "class Lost:\n    def __init__(self): self.count = 0\n    def actor_a(self): self.count += 1\n"
        "    def actor_b(self): self.count += 1\n    def at_end(self): assert self.count == 2\n"
    )
    begin = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom lost import Lost\n"
    (token,) = run(f"{begin}from reactive_runtime.explore import explore\nprint(explore(Lost).failure.token)")
    code = f"{begin}import reactive_runtime.hot\nfrom reactive_runtime.explore import replay\n"
    assert run(f"{code}print(replay(Lost, {token!r}).failure is not None)") == ["True"]


def _steps(seconds: float) -> Callable[[], float]:
    now = [0.0]

    def read() -> float:
        now[0] += seconds
        return now[0]

    return read


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 0), (2.0, 1)])
def test_a_long_rewriting_says_so_once(
    seconds: float, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(code_patcher, "_seconds", _steps(seconds))

    class Program:
        def actor_a(self) -> None:
            self.one = 1

        def actor_b(self) -> None:
            self.two = 2

    assert explore(Program, schedules=1).failure is None
    assert capsys.readouterr().err.count("explore: rewriting") == lines
