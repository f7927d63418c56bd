"""The paths that public names had before they were exported by `reactive_runtime`; see its `__all__`."""
