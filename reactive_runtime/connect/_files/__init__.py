"""The parts of the adapter of files and objects. `files` imports this; start at `place`."""
