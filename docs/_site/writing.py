"""Writes the pages that are made before the build, so that a page whose text is the same is not built again."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write"]


def write(folder: Path, pages: dict[str, str]) -> None:
    """The files below `folder` are these pages, afterwards, and no others."""
    texts = {folder / name: text for name, text in pages.items()}
    for path in [*folder.rglob("*.md"), *folder.rglob("*.rst")]:
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
