"""The detector of calls that block a thread of a pool; read `detector` first.

`checked_calls` puts checks into the functions of the standard library that block, `watcher` looks from outside at waits
without such a function, and `places` finds the operator and the user's line on a stack.
"""
