"""How long the kit takes on slow publishers, beside what it says beforehand.

    PYTHONPATH=tests:. python benchmarks/kit.py

The estimate is `Verification.seconds()`: what the checks ask for, times the pace that is measured first.
"""

from __future__ import annotations

import time

from tck import unusual

from reactive_runtime.tck import PublisherVerification

MADE = (unusual.Slow, unusual.LateOnSubscribe, unusual.SlowOnAPool, unusual.Jittery)


def main() -> None:
    """Run all checks of each, and print a line."""
    print(f"{'publisher':<20} {'says':>8} {'takes':>8} {'longest check':>14}")
    for made in MADE:
        verification = unusual.verification_of(made)
        assert isinstance(verification, PublisherVerification)
        said = verification.seconds()
        took: list[float] = []
        for check in verification.checks():
            began = time.monotonic()
            verification.outcome(check)
            took.append(time.monotonic() - began)
        print(f"{made.__name__:<20} {said:>6.1f} s {sum(took):>6.1f} s {max(took):>12.1f} s")


if __name__ == "__main__":
    main()
