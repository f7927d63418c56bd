"""Operators and sources with a clock: `timing` moves signals in time, `rates` lets fewer elements pass in a time.

Only `Flow` imports it, to inherit its methods.
"""
