"""The site, built once for all of these tests, with every warning an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site: that of SITE, where the caller has just built one (`.ci/run`)."""
    if "SITE" in os.environ:
        return Path(os.environ["SITE"])
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(out / "doctrees"), "docs", str(out / "html")],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"
