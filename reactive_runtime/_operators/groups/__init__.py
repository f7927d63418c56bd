"""One source to several flows: groups and windows, each with a bounded buffer.

Start at `grouping` and `windows`, which have the methods. `group_source` deals elements out, `group_buffer` keeps them.

Only `Flow` imports it, to inherit its methods.
"""
