"""A test under `@pytest.mark.explore` runs under many schedules. Imported when the first such test runs.

The hooks are in `pytest_reactive_runtime`, outside of this package: pytest imports them in every run, and they import
nothing of it, so a run without the marker costs nothing.
"""

from __future__ import annotations

import re
import shutil
import zlib
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Result, Scenario, explore, replay
from reactive_runtime.explore._explore_command import saved, token_in
from reactive_runtime.explore._instrument.code_patcher import assertions_explained
from reactive_runtime.explore._standins.instrumented import Location
from reactive_runtime.explore._standins.patching import READ

__all__ = ["Fixtures", "explore_test", "file_of", "why"]


def explore_test(pyfuncitem: pytest.Function, marker: pytest.Mark) -> None:
    """Explore a marked test. Fails it under the first schedule that fails, and writes that schedule to its file."""
    if marker.args:
        raise ValueError("the marker explore takes keywords only, those of reactive_runtime.explore.explore")
    function = pyfuncitem.obj
    fixtures = Fixtures(pyfuncitem)

    def test(arguments: dict[str, Any]) -> None:
        try:
            function(**arguments)
        except SystemExit as error:
            raise AssertionError(f"the test called sys.exit({error.code!r})") from error

    scenario: Scenario[Any] = Scenario(
        fixtures.set_up,
        {"test": [test]},
        tear_down=fixtures.tear_down,
        name=pyfuncitem.name,
        parts=[function, *fixtures.functions],
    )
    file = file_of(pyfuncitem)
    with assertions_explained():
        result = _explore(scenario, file, marker)
    if result.not_looked_into:
        pyfuncitem.warn(pytest.PytestWarning(f"{pyfuncitem.nodeid} is {result}"))


def _explore(scenario: Scenario[Any], file: Path, marker: pytest.Mark) -> Result:
    """The result, which has no failure."""
    before = _again(scenario, file)
    if before is not None and before.failure is not None:
        pytest.fail(f"fails again, under the schedule of {file}:\n{why(before)}", pytrace=False)
    result = explore(scenario, **marker.kwargs)
    if result.failure is None:
        file.unlink(missing_ok=True)
        if not result.holds:
            pytest.fail(str(result), pytrace=False)
        return result
    if isinstance(error := result.failure.error, pytest.skip.Exception | pytest.fail.Exception):
        raise error
    saved(result, file)
    pytest.fail(f"fails under a schedule that was written to {file}:\n{why(result)}", pytrace=False)


_COLLECTING: Final = ("capsys", "capsysbinary", "capfd", "capfdbinary", "recwarn")
"""Fixtures of pytest that collect what a test does; `caplog` does so too, and keeps it elsewhere."""


class Fixtures:
    """The fixtures of a test, those of function scope anew for each schedule.

    Those of a wider scope, and pytest's own (`tmp_path`, `monkeypatch`), are set up once, but for what collects.

    Args:
        item: The test; pytest has set it up.
        every: Set up `monkeypatch` anew as well, and empty `tmp_path`.
    """

    def __init__(self, item: pytest.Function, *, every: bool = False) -> None:
        self._item: Any = item
        self._unused = True  # pytest has set them up, and no schedule has
        self._every = every
        info = self._item._fixtureinfo
        own = (*_COLLECTING, "monkeypatch") if every else _COLLECTING
        self._anew: list[Any] = [
            definition
            for name in info.names_closure
            for definition in info.name2fixturedefs.get(name, ())
            if definition.scope == "function"
            and (not _is_pytests(definition.func) or name in own or name.startswith("_xunit_"))
        ]

    @property
    def functions(self) -> list[Any]:
        """Those of the program: they are looked into."""
        return [definition.func for definition in self._anew if not _is_pytests(definition.func)]

    def set_up(self) -> dict[str, Any]:
        """The arguments of the test."""
        item = self._item
        if self._anew:
            # Pytest has set them up before the first schedule; the test has not run since, so no check holds of them.
            with suppress(Exception) if self._unused else nullcontext():
                self.tear_down(None)
            self._unused = False
            for definition in self._anew:  # a schedule that ended while it was set up has left some
                getattr(definition, "_finalizers", []).clear()
            item._initrequest()
            item._request._fillfixtures()
        for name in ("tmp_path", "tmpdir") if self._every else ():
            if name in item.funcargs:
                _empty(Path(item.funcargs[name]))
        if "caplog" in item.funcargs:
            item.funcargs["caplog"].clear()
            vars(item.funcargs["caplog"].handler)[READ] = Location()
        return {name: item.funcargs[name] for name in item._fixtureinfo.argnames}

    def given(self) -> dict[str, Any]:
        """The arguments that pytest has set up, for the first run of the test."""
        self._unused = False
        return {name: self._item.funcargs[name] for name in self._item._fixtureinfo.argnames}

    def tear_down(self, _: object) -> None:
        """After a schedule. What is torn down already has nothing left to do."""
        errors: list[BaseException] = []
        for definition in reversed(self._anew):
            try:
                definition.finish(self._item._request)
            except BaseException as error:  # the others are torn down all the same
                errors.append(error)
        if errors:
            raise errors[0]

    def give_up(self) -> None:
        """After a schedule of which a thread is blocked for good: the fixtures of the program may wait for it."""
        for definition in reversed(self._anew):
            if not _is_pytests(definition.func):
                getattr(definition, "_finalizers", []).clear()
            definition.finish(self._item._request)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _is_pytests(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "").partition(".")[0] in ("_pytest", "pytest")


def _again(scenario: Scenario[Any], file: Path) -> Result | None:
    """The schedule that failed last time; None where there is none, or the source is another by now."""
    if not file.exists():
        return None
    try:
        return replay(scenario, token_in(file))
    except ExploreError:
        return None


def why(result: Result) -> str:
    assert result.failure is not None
    return f"{result.failure.message}\n\n{result.failure.diagram()}"


def file_of(item: pytest.Function) -> Path:
    """Return the file for the schedule of a test: two tests of a module have two files."""
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    whole = ".".join([item.path.stem, *classes, item.name])
    name = re.sub(r"[^\w.-]+", "_", whole)
    if re.search(r"[^\w.\[\]-]|_", item.name.partition("[")[2]):  # another parameter may have the same name then
        name += f".{zlib.crc32(whole.encode()):08x}"
    return item.path.parent / "__schedules__" / f"{name}.schedule"
