"""Runs the kit on every step, and prints what each still breaks."""

from __future__ import annotations

from examples.stream_publisher.conformance import STEPS, verification_of


def main() -> None:
    """Verify each step, and print a line for it."""
    for title, publisher in STEPS.items():
        outcomes = list(verification_of(publisher).outcomes())
        original = [outcome for outcome in outcomes if outcome.check.original]
        failed = [outcome for outcome in outcomes if outcome.status == "failed"]
        counts = ", ".join(
            f"{sum(item.status == status for item in original)} {status}" for status in ("passed", "failed", "skipped")
        )
        rules = sorted({item.rule for item in failed}, key=lambda rule: [int(part) for part in rule.split(".")])
        ours = sum(not item.check.original for item in failed)
        print(f"{title:<34} {counts}; {ours} of this kit's own failed; breaks {', '.join(rules) or 'nothing'}")


if __name__ == "__main__":
    main()
