"""Runs the kit on every step, and prints what each still breaks."""

from __future__ import annotations

from examples.stream_publisher.conformance import STEPS, verification_of


def main() -> None:
    for title, publisher in STEPS.items():
        outcomes = list(verification_of(publisher).outcomes())
        original = [it for it in outcomes if it.check.original]
        failed = [it for it in outcomes if it.status == "failed"]
        counts = ", ".join(
            f"{sum(it.status == status for it in original)} {status}" for status in ("passed", "failed", "skipped")
        )
        rules = sorted({it.check.rule for it in failed}, key=lambda rule: [int(part) for part in rule.split(".")])
        ours = sum(not it.check.original for it in failed)
        print(f"{title:<34} {counts}; {ours} of this kit's own failed; breaks {', '.join(rules) or 'nothing'}")


if __name__ == "__main__":
    main()
