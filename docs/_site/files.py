"""Files of the repository that the docs link to: a file becomes a page with its text, a folder one with its files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

__all__ = ["pages", "rewritten"]

ROOT: Final = Path(__file__).parents[2]
LINK: Final = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)\)")
SHOWN: Final = (".py", ".sh", ".toml", ".java")


def pages(docs: Path) -> dict[str, str]:
    """The text of each page by its path, below the folder of the files."""
    made: dict[str, str] = {}
    for page in docs.rglob("*.md"):
        if "files" not in page.relative_to(docs).parts:
            for target in LINK.findall(page.read_text()):
                path = _of_the_repository(page, target)
                if path is not None:
                    _add(path, made)
    made["index.md"] = _index(sorted(made))
    return made


def rewritten(page: Path, docs: Path, text: str) -> str:
    """The text of `page` with links to files of the repository turned into links to their pages."""

    def link(match: re.Match[str]) -> str:
        path = _of_the_repository(page, match[1])
        return match[0] if path is None else f"]({os.path.relpath(docs / 'files' / _name(path), page.parent)})"

    return LINK.sub(link, text)


def _of_the_repository(page: Path, target: str) -> Path | None:
    """The file that is meant, from the root of the repository, if it is one outside of docs."""
    path = (page.parent / target).resolve()
    if not path.exists() or not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "docs"):
        return None
    return path.relative_to(ROOT)


def _name(path: Path) -> str:
    return f"{path}.md" if path.suffix else f"{path}/index.md"


def _add(path: Path, made: dict[str, str]) -> None:
    if not (ROOT / path).is_dir():
        up = os.path.relpath(ROOT / path, (ROOT / "docs/files" / _name(path)).parent)
        language = "python" if path.suffix == ".py" else "text"
        made[_name(path)] = (
            f"---\norphan: true\n---\n\n# {path}\n\n```{{literalinclude}} {up}\n:language: {language}\n```\n"
        )
        return
    inside = (ROOT / path).iterdir()
    files = sorted(file.relative_to(ROOT) for file in inside if file.suffix in SHOWN and file.stat().st_size)
    for file in files:
        _add(file, made)
    links = "\n".join(f"- [{file.name}]({file.name}.md)" for file in files)
    made[_name(path)] = f"---\norphan: true\n---\n\n# {path}\n\n{links}\n"


def _index(names: list[str]) -> str:
    links = "\n".join(f"- [{name.removesuffix('/index.md').removesuffix('.md')}]({name})" for name in names)
    return f"---\norphan: true\n---\n\n# Files of the repository\n\n{links}\n"
