"""The version of the rules is another one where a trace gets another verdict."""

from __future__ import annotations

from hashlib import sha256

from breaches import named_lists

from reactive_runtime.judging import RULES_VERSION, Rows, judge
from reactive_runtime.testing.trace import table_of

DIGESTS = {1: "69d9fa1326995bed"}
"""By version, of the verdicts on all named traces of `breaches`."""


def test_another_verdict_on_a_named_trace_is_another_version_of_the_rules() -> None:
    """If it fails, add a version with its digest, and raise RULES_VERSION.

    If only a trace was added to `breaches`, write the digest anew.
    """
    records = [item._replace(run=name) for name, of in named_lists().items() for item in of]
    columns = ("run", "subscription", "rule", "count", "first")
    found = judge(Rows.of_table(table_of(records))).violations
    rows = sorted(zip(*(found[name].to_pylist() for name in columns), strict=True))
    assert len(rows) > 50
    assert sha256(repr(rows).encode()).hexdigest()[:16] == DIGESTS[RULES_VERSION]
    assert max(DIGESTS) == RULES_VERSION
