"""Ends of flows: subscribers made of functions, values waited for, futures, loops and queues.

Start at `terminal`, which has the methods. `loops` has `for` and `async for`, `queueing` the subscriber of
`to_queue`, `waiting` the checks of a wait.

Only `Flow` imports it, to inherit its methods and to be iterated.
"""
