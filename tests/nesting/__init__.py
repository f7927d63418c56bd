"""Flows of flows: each operator that makes inner flows, with each that consumes them, under each way to read."""
