"""The lines of a file to processes, and back in their order."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from reactive_runtime import Flow

LINES = 2_000


def digest(line: str) -> str:
    """Work for a processor. Of the module, so that another process finds it."""
    return hashlib.pbkdf2_hmac("sha256", line.encode(), b"salt", 100).hex()[:8]


@contextmanager
def a_file() -> Iterator[Path]:
    """A file with lines, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        path.write_text("".join(f"line {n}\n" for n in range(LINES)))
        yield path


def main(path: Path) -> list[str]:
    """The digest of each line, in the order of the lines. At most 8 x 50 lines are under way."""
    with ProcessPoolExecutor(2) as processes:
        digests = Flow.from_file(path).map_parallel(digest, processes, concurrency=8, chunk=50)
        return digests.to_list().block(timeout=60) or []


if __name__ == "__main__":
    with a_file() as path:
        digests = main(path)
    print(f"{len(digests)} lines; the first is {digests[0]}, the last {digests[-1]}")
    sys.exit(0)
