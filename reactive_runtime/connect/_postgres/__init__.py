"""The parts of the two adapters of PostgreSQL. `postgres` and `postgres_queue` import this; start at `connection`."""
