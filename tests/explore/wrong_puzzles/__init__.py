"""Classes that look like solutions of the puzzles, each with a part of what the marking says of it.

If the order decides which of two faults shows, there is a part of each, with a | between them.
"""
