"""Sources of flows: `pulled` from what is at hand, `deferred` to each subscription, `creating` by pushing.

Only `Flow` imports it, to have its sources.
"""
