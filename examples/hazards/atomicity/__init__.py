"""A. Atomicity: steps that belong together, and another thread comes in between."""
