"""Bridges to other implementations of the protocol; each is imported by its own name, and needs an extra."""
