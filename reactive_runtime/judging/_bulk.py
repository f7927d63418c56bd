"""Records in memory, judged by columns: which of their subscriptions are to be looked at more closely."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._kernel import judge
from reactive_runtime.judging._rows import Rows
from reactive_runtime.testing._records import Record
from reactive_runtime.testing.trace import table_of

__all__ = ["suspects"]


def suspects(records: Sequence[Record], late_signals: int = 1) -> Sequence[Record]:
    """The records, in their order, of the subscriptions that break a rule.

    All of them where a field has what its column can't hold: a ticket beyond 64 bits, a text that is none. Then it is
    for the reference to judge, which takes anything.
    """
    try:
        found = judge(Rows.of_table(table_of(records)), late_signals=late_signals).violations
    except (TraceError, pa.ArrowException, TypeError, ValueError, OverflowError):
        return records
    broken = set(zip(found["run"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    return [record for record in records if (record.run, record.subscription) in broken] if broken else []
