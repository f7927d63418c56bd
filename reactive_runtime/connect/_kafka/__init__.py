"""The parts of the adapter of Kafka. `kafka` imports this; start at `cluster`, then `offsets`."""
