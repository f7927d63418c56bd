"""Additions to Sphinx: pages that are made before the build, `.. marble::`, signatures as they are called."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any
from zlib import crc32

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

from docs._site import files, finds, lessons, reference, slides
from docs._site.drawing import svg
from docs._site.examples import EXAMPLES, WITHOUT
from docs._site.names import ROOT, members
from docs._site.recording import run
from docs._site.writing import write

__all__ = ["setup"]


class Marble(Directive):
    """The picture of an operator: a figure with the code that was run."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name in WITHOUT:
            return [nodes.paragraph(text=f"No picture: {WITHOUT[name]}.")]
        example = EXAMPLES[name]
        note = f"<figcaption>{escape(example.note)}</figcaption>" if example.note else ""
        picture = f'<div class="marble-scroll" tabindex="0">\n{svg(name, run(example))}\n</div>'
        return [nodes.raw("", f'<figure class="marble-figure">{picture}{note}</figure>', format="html")]


def _write_pages(app: Sphinx) -> None:
    docs = Path(app.srcdir)
    write(docs / "reference", reference.pages())
    write(docs / "lessons", {**lessons.pages(), **slides.pages()})
    write(docs / "found", finds.pages())
    write(docs / "files", files.pages(docs))


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    page = docs / f"{name}.md"
    if page.exists() and "files" not in page.relative_to(docs).parts:
        source[0] = files.rewritten(page, docs, source[0])


def _signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """A member of `Flow` is shown as it is called: without the flow it is called on; a line for each overload."""
    called = {f"{ROOT}.Flow.{member.name}": member for member in members()}.get(name)
    if called is None:
        return signature and reference.readable(signature), returns and reference.readable(returns)
    first, *others = [reference.readable(stringify_signature(form)) for form in called.signatures]
    return "\n".join([first, *(f"{name.removeprefix(f'{ROOT}.')}{form}" for form in others)]), None


def _bases(app: Sphinx, name: str, cls: type, options: Any, bases: list[Any]) -> None:
    bases[:] = reference.shown_bases(cls)


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A constant has the text below its assignment, not that of its type; backquotes as Sphinx takes them.

    An *Origin* names another library: its names link to nothing here.
    """
    if what == "data":
        lines[:] = reference.doc_of_data(name, thing)
    text, heading, origin = "\n".join(lines).partition(".. rubric:: Origin")
    lines[:] = (reference.as_rst(text) + heading + re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", origin)).split("\n")


def _page(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """A block of code that is wider than the page scrolls by keyboard, too."""
    if "body" in context:
        context["body"] = context["body"].replace("<pre>", '<pre tabindex="0">')


def _sections(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Beside a page stand all sections, and the pages of its own: those of every section would be longer than it is."""
    if "toctree" in context:
        whole = context["toctree"]
        context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx. It reads all pages anew if a file of this folder has changed."""
    app.add_directive("marble", Marble)
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _read)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-bases", _bases)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("html-page-context", _page)
    app.connect("html-page-context", _sections, priority=400)  # before the theme asks for them
    own = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    return {"env_version": crc32(own), "parallel_read_safe": True, "parallel_write_safe": True}
