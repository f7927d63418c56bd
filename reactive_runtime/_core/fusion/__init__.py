"""Steps and the loops made of them: one element goes through all synchronous operators in one function.

Start at `step`, the base of a synchronous operator, then `fuse`. `subscription` drains such a loop to a subscriber.

Operators and sources import it.
"""
