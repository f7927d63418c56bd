"""Operators that keep elements: lists of them, the last ones, one that stands for several, all of them in order.

Start at `buffers`. `last_ones` and `conflating` keep elements for a while, `sorting` keeps all of them, on disk if they
are many.
"""
