"""Where flows end: subscribers made of functions, values waited for, futures, loops and queues.

Start at `terminal`, which has the methods. `_loops` has `for` and `async for`, `_waiting` the checks of a wait.

Only `Flow` imports it, to inherit its methods and to be iterated.
"""
