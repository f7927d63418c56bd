"""Bounded queues between threads: what an upstream has sent and no downstream has requested yet.

Start at `prefetch_queue`, the boundary of `publish_on`. `multicaster` is the queue of hot sources.

Operators, sources and hot sources import it.
"""
