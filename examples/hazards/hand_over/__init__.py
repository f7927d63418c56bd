"""C. Hand-over: one thread waits for what another one leaves."""
