"""RxJava reports what breaks 3.9, and what it can't deliver, to a hook, which prints; not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rxjava_quiet"]


@contextmanager
def rxjava_quiet() -> Iterator[None]:
    import jpype

    plugins = jpype.JClass("io.reactivex.rxjava3.plugins.RxJavaPlugins")
    quiet = jpype.JProxy("io.reactivex.rxjava3.functions.Consumer", dict={"accept": lambda error: None})
    plugins.setErrorHandler(quiet)
    try:
        yield
    finally:
        plugins.reset()
