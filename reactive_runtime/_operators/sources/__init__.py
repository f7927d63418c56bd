"""Sources of flows: `pulled` from what is at hand, `deferred` to each subscription, `creating` by pushing.

`queued` has the source that takes elements out of a queue. Only `Flow` imports it, to have its sources.
"""
