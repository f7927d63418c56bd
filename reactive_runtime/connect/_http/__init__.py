"""The parts of the adapters of HTTP. `asgi` and `http` import this; start at `sse`."""
