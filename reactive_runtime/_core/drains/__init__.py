"""The drain: one loop emits to a subscriber, and one thread at a time owns it.

`drain` has the loop and the demand, `drain_context` what sources need of it, `combinator` the base of operators with
several upstreams, `trampoline` how drains on one thread follow each other. Start at `drain`.

Operators, sources and hot sources import it.
"""
