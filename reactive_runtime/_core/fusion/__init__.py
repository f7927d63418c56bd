"""Steps and the loops made of them: one element goes through all synchronous operators in one function.

Start at `step`, the base of a synchronous operator, then `fuse`. `reading` reads the classes of steps, `loop_writer`
writes their loop, and `subscription` drains it to a subscriber.

Operators and sources import it.
"""
