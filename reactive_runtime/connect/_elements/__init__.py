"""Elements with acknowledgement, whatever system they come from. The adapters import this; start at `acked`."""
