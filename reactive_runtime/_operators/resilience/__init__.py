"""Operators for services that fail: to go on after an error, to stop in time, to call less often.

Start at `dead_letters`. `Flow` imports it, to inherit its methods.
"""
