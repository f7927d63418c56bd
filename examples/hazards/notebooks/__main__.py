"""Writes the notebooks."""

from examples.hazards.notebooks import write

write()
