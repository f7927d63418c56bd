"""The ground of `_core`: the door to threading, the event loop, checks of arguments.

Start at `primitives`: every lock, clock and thread of the package comes from there.

Any module of the package may import it.
"""
