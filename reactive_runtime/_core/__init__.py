"""The core: the door to threading, demand and the one drain loop, fusion, the hooks."""
