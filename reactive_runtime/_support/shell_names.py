"""Names from the shell: `package.module:name` becomes what it names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from reactive_runtime.errors import TargetError

__all__ = ["import_string"]


def import_string(target: str) -> Any:
    """What "package.module:name" names; the name may have dots. TargetError where there is no such thing.

    Modules are looked for in the working folder as well.
    """
    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        raise TargetError(f"{target!r}: package.module:name is needed")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        item: Any = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may end the interpreter, too
        raise TargetError(f"{target}: importing {module_name} raised {type(error).__name__}: {error}") from error
    for name in path.split("."):
        try:
            item = getattr(item, name)
        except AttributeError as error:
            raise TargetError(f"{target}: {error}{_meant(name, item)}") from error
    return item


def _meant(name: str, item: object) -> str:
    """The name that is most like it, as Python says it below a traceback."""
    from difflib import get_close_matches  # where a name is wrong

    close = get_close_matches(name, dir(item), 1)
    return f". Did you mean: {close[0]!r}?" if close else ""
