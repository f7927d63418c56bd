"""The parts of the adapter of Redis Streams. `redis_streams` imports this; start at `server`."""
