"""The addresses by which the parts of the service find each other, from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["QUEUE", "RESULTS", "SCHEMA", "Settings"]

QUEUE = "jobs"
"""The queue in PostgreSQL."""
RESULTS = "results"
"""The stream of Redis from which live clients hear of results."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS parcels (id text PRIMARY KEY, city text NOT NULL, lat float8 NOT NULL, lon float8 NOT NULL);
CREATE TABLE IF NOT EXISTS failed (id text PRIMARY KEY, reason text NOT NULL);
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The addresses of the servers.

    Args:
        database: A connection string of PostgreSQL.
        redis: A URL of Redis.
        places: The URL of the service that knows where a city is.
    """

    database: str
    redis: str
    places: str

    @classmethod
    def from_environment(cls) -> Settings:
        """As `to_environment` has written them."""
        return cls(database=os.environ["DATABASE_URL"], redis=os.environ["REDIS_URL"], places=os.environ["PLACES_URL"])

    def to_environment(self) -> dict[str, str]:
        """The environment of a part."""
        return {"DATABASE_URL": self.database, "REDIS_URL": self.redis, "PLACES_URL": self.places}
