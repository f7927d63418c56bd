"""E. No races, but met together with them: one thread is enough."""
