"""Takes a picture of the report on a made-up year, in Chromium.

python -m examples.year.picture docs/year.png
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from examples.year.made_year import Planted, made_year, write_year
from reactive_runtime.report import write_year as write_report

__all__ = ["PLANTED", "main"]

PLANTED: Final = (
    Planted("merge", 90, tuple(range(200)), "1.3", nights=6),
    Planted("replay", 180, tuple(range(40, 80)), "2.7", nights=60),
    Planted("timeout", 260, (120,), "1.8"),
    Planted("group_by", 300, tuple(range(140, 160)), "conservation", every=3),
)


def main(file: str) -> None:
    """Make the year, its report, and the picture."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_year(Path(folder), made_year(PLANTED))
        write_report(folder, page_file := Path(folder) / "year.html")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 1440})
        page.goto(page_file.as_uri())
        Path(file).write_bytes(page.screenshot())
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
