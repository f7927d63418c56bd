"""The parts of the adapter of NATS JetStream. `jetstream` imports this; start at `nats_servers`."""
