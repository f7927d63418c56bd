"""Classes that look like solutions of the puzzles, each with a part of what the marking says of it.

Where it depends on the order which of two faults shows, both parts are given, with a | between them.
"""
