"""The parts of the kit for adapters. `adapters` imports this; start at `description`, then `verification`."""
