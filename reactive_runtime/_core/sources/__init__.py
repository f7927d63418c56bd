"""The beginning of flows: the plan of a flow, and the iterator that one subscription pulls from.

Start at `core_flow`, then `flow_source` and `pollable`.

Operators and the package's own sources import it.
"""
