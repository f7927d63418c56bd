"""Takes a picture of the page at work.

python -m examples.service.picture docs/how-to/service.png
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from examples.service.parts import Service


def main(file: str) -> None:
    """Send jobs by the button of the page, for some seconds."""
    from playwright.sync_api import sync_playwright

    with Service() as service, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 760})
        page.goto(service.url)
        for sent in range(1, 13):
            page.get_by_role("button").click()
            page.wait_for_function(f"Number(document.getElementById('seen').textContent) > {100 * sent}")
        Path(file).write_bytes(page.screenshot())
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
