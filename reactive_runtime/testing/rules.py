"""The rules that can be judged from a trace, and what each asks, in one sentence."""

from __future__ import annotations

from typing import Final

__all__ = ["RULES"]

RULES: Final[dict[str, str]] = {
    "1.1": "a publisher never signals more on_next than were requested so far",
    "1.3": "signals to one subscriber are serial: one returns before the next begins",
    "1.7": "nothing is signalled after on_error or on_complete",
    "1.8": "after cancel has returned the signals stop",
    "1.9": "on_subscribe is the first signal, comes exactly once, and subscribe returns normally",
    "2.7": "a subscriber's calls of request and cancel are serial",
    "3.8": "request(n) adds n to the demand: no demand is lost",
    "3.9": "a request below 1, or of something that is no int, is answered with on_error, and nothing follows",
    "3.16": "request and cancel return normally",
    "3.17": "the sum of all demand is capped at 2^63-1, and never wraps",
    "conservation": "no element is delivered twice, and none is lost before on_complete",
}
