"""`python -m oracle --chains 20000`: random chains, here and in RxJava and Reactor; prints the count by operator."""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import time

from oracle.running import explore
from oracle.theirs import Java, missing


def main() -> int:
    """Exit status 0: no difference without an explanation."""
    parser = argparse.ArgumentParser(prog="python -m oracle", description=__doc__)
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="a number; by default a new one, which is printed")
    arguments = parser.parse_args()
    if reason := missing():
        print(reason, file=sys.stderr)
        return 2
    logging.disable()
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    begin = time.monotonic()
    with Java() as java:
        counts, differences = explore(java, arguments.chains, seed, most=10)
    print(counts.table())
    for difference in differences:
        print(f"a difference without an explanation: {difference}")
    print(f"in {time.monotonic() - begin:.0f} s, with {len(differences)} differences without an explanation")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
