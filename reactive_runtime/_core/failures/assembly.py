"""Notes on an error of a user's function: which operator called it, and the line that put the operator into a flow.

An error gets one note, from the innermost operator it came through. A fused loop has no frame for each of its
operators; but each of its lines names the step it belongs to (`s3_fn`), and `linecache` has the lines.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Final, TypeVar

from reactive_runtime._core.failures.error_carrier import SignalledError, signalled
from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.shown import shown

__all__ = [
    "AssemblyLocation",
    "add_note",
    "an_exception",
    "assembly_location",
    "caused",
    "no_end",
    "note_assembly",
    "note_step",
    "notes_of",
    "operator_of",
    "place_of_thread",
    "raised_over",
]

E = TypeVar("E", bound=BaseException)

AssemblyLocation = tuple[str, int]
"""A file, and a line in it."""

_PACKAGE: Final = __name__.partition(".")[0]
_STEP: Final = re.compile(r"\bs(\d+)(?:_|\b)")
_OTHER: Final = re.compile(r"\b[vg](\d+)(?:_|\b)")
_SOURCE: Final = re.compile(r"^    for \w+ in upstream:")
_VARIABLE: Final = re.compile(r"\bv\d+_(\w+)")
_NOTE: Final = "assembled at "
_NOWHERE: Final = "in the flow: "
_UNFUSED: Final = f"{_PACKAGE}._core.fusion.fuse"


def assembly_location() -> AssemblyLocation | None:
    """The innermost line on the stack that is not the package's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] != _PACKAGE:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def place_of_thread(ident: int) -> str:
    """In words, the line of a user's program that a thread is in. Empty: the thread has ended, or has none."""
    frame = primitives.frame_of(ident)
    if frame is not None and _is_ours(frame):
        while frame is not None and _is_ours(frame):
            frame = frame.f_back  # the call that began the flow
    else:
        while frame is not None and frame.f_back is not None and not _is_ours(frame.f_back):
            frame = frame.f_back  # the function that the flow has called, and not what that has called in turn
    if frame is None:
        return ""
    code = frame.f_code
    return f"the thread is in {code.co_name} at {code.co_filename}:{frame.f_lineno}"


def _is_ours(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] == _PACKAGE or frame.f_code.co_filename.startswith("<fused ")


def an_exception(error: BaseException) -> Exception:
    """The error to signal for `error`: itself; for an exit (`failures.exits`), or a StopIteration, a RuntimeError.

    So operators, which pass errors on by raising them, never raise an exit that was only reported to them, nor a
    StopIteration, which would end an iterator. The cause of the RuntimeError is `error`.
    """
    if isinstance(error, StopIteration):
        fault = RuntimeError("a function of the pipeline raised StopIteration, which is an error and not its end")
    elif isinstance(error, Exception):
        return error
    else:
        fault = RuntimeError(f"a user's code raised {shown(error)}, which is no Exception: it ends the stream")
    _note_as(error, fault)
    return caused(fault, error)


def caused(fault: E, cause: BaseException) -> E:
    """`fault`, whose cause is `cause`, as `raise fault from cause` has it."""
    fault.__cause__ = cause
    return fault


def no_end(error: Exception) -> Exception:
    """The error to signal for one that was raised: out of its carrier.

    A StopIteration that a user's function raised is an error, not the end; a generator may have wrapped it.
    """
    error = signalled(error)
    stop = _wrapped(error)
    fault = an_exception(stop or error)
    if stop is not None:
        _note_as(error, fault)
    return fault


def _wrapped(error: BaseException) -> StopIteration | None:
    """The StopIteration that a generator has raised, and made a RuntimeError of."""
    cause = error.__cause__
    wrapped = isinstance(error, RuntimeError) and error.args == ("generator raised StopIteration",)
    return cause if wrapped and isinstance(cause, StopIteration) else None


def _note_as(error: BaseException, fault: BaseException) -> None:
    """Copy the notes of `error` to `fault`."""
    there = notes_of(fault)
    for note in [note for note in notes_of(error) if note not in there]:
        add_note(fault, note)


def raised_over(error: BaseException, failure: BaseException) -> None:
    """Note on `error` that it came up while `failure` was being dealt with, as Python does inside of `except`."""
    first = _chain(error)
    if not {id(item) for item in first} & {id(item) for item in _chain(failure)}:  # or it would be a circle
        first[-1].__context__ = failure


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error, its cause or context, and so on."""
    found: dict[int, BaseException] = {}
    while error is not None and id(error) not in found:
        found[id(error)] = error
        error = error.__cause__ or error.__context__
    return list(found.values())


def notes_of(error: BaseException) -> list[str]:
    """The notes on an error; a user may have put anything there, also an object that raises."""
    try:
        notes = getattr(error, "__notes__", ())
        return [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []
    except Exception:
        return []


def add_note(error: BaseException, note: str) -> None:
    """Add a note; an error whose class takes none goes on without."""
    with suppress(Exception):
        error.add_note(note)


def note_assembly(error: BaseException, operator: object, location: AssemblyLocation | None) -> None:
    """Note on `error` which operator it came out of, unless a note says that already."""
    if isinstance(error, SignalledError):
        return  # its publisher has noted it, or is not ours
    if any(_NOTE in note or note.startswith(_NOWHERE) for note in notes_of(error)):
        return
    add_note(error, f"in {operator}, {_NOTE}{location[0]}:{location[1]}" if location else f"{_NOWHERE}{operator}")


def operator_of(error: BaseException) -> str:
    """The operator that a note of `note_assembly` names; empty: there is none."""
    for note in notes_of(error):
        if note.startswith(_NOWHERE):
            return note.removeprefix(_NOWHERE)
        if note.startswith("in ") and _NOTE in note:
            return note.removeprefix("in ").rpartition(f", {_NOTE}")[0]
    return ""


def note_step(error: BaseException) -> None:
    """`note_assembly`, where the error came out of a fused loop: out of a function that one of its steps called."""
    if isinstance(error, SignalledError):
        return  # its publisher has noted it, or is not ours
    stop = _wrapped(error)
    if stop is not None:
        _note_as(stop, error)
    if isinstance(error, NameError):
        _name_as_written(error)
    for trace in reversed(list(_frames((stop or error).__traceback__))):
        frame = trace.tb_frame
        code = frame.f_code
        if code.co_name == "_given" and frame.f_globals.get("__name__") == _UNFUSED:  # a step that is called as it is
            note_assembly(error, frame.f_locals["step"], frame.f_locals["step"].location)
            return
        if code.co_name == "_checked" and frame.f_globals.get("__name__") == _UNFUSED:
            return  # out of the source
        if not code.co_filename.startswith("<fused") or code.co_name != "loop":  # a comprehension has its own frame
            continue
        line = linecache.getline(code.co_filename, trace.tb_lineno)
        # A step that hands an element on to the next one names its own variables, and binds that of the next.
        numbers = _STEP.findall(line)[:1] or sorted(_OTHER.findall(line), key=int)
        if numbers and not _SOURCE.search(line):
            step = trace.tb_frame.f_locals["steps"][int(numbers[0])]
            note_assembly(error, step, step.location)
        return


def _name_as_written(error: NameError) -> None:
    """Give a variable without a value, of a step in a loop, the name that it has in the step."""
    frames = list(_frames(error.__traceback__))
    if not frames or not frames[-1].tb_frame.f_code.co_filename.startswith("<fused"):
        return
    error.args = tuple(
        _VARIABLE.sub(r"\1", argument) if isinstance(argument, str) else argument for argument in error.args
    )
    if isinstance(error.name, str):
        error.name = _VARIABLE.sub(r"\1", error.name)


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
