"""The drain: one loop emits to a subscriber, and one thread at a time owns it.

Start at `drain`, the loop and the demand. `drain_context` is a drain that sources hang on, `combinator` the base of
operators with several upstreams, `inner_subscription` one of these upstreams. `trampoline` bounds the stack.

Operators, sources and hot sources import it.
"""
