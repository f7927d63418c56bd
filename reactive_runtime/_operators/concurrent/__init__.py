"""Several elements worked on at once: calls on an executor, coroutines, inner flows.

Start at `flattening` (`flat_map`) and `calling` (`map_parallel`).

`Flow` imports it, to inherit its methods.
"""
