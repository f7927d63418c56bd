"""Bounded queues between threads: elements that an upstream has sent, and no downstream has requested yet.

Start at `prefetch_queue`, the boundary of `publish_on`. `multicaster` is the queue of hot sources, `upstream` calls
`request` and `cancel`.

Operators, sources and hot sources import it.
"""
