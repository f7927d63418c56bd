"""What all of `_core` stands on: the door to threading, the event loop, checks of arguments.

Start at `primitives`: every lock, clock and thread of the package comes from there.

Every module may import it; it imports no other room but `failures`.
"""
