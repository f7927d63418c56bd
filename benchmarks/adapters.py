"""The table of the kit for adapters: each of ours, with its server.

python benchmarks/adapters.py [--adapter redis_streams]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from connect.adapters import ADAPTERS, Described

from reactive_runtime.tck.adapters import judge, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", choices=sorted(ADAPTERS), action="append", help="this one; default: all")
    results = []
    for name in parser.parse_args().adapter or ADAPTERS:
        with tempfile.TemporaryDirectory() as folder, ADAPTERS[name](Path(folder)) as create:
            results.append(judge(Described(create)))
    print(table(results))
    sys.exit(any(result.accused for result in results))


if __name__ == "__main__":
    main()
