"""Starts the service with its servers, and prints the address of its page.

python -m examples.service [PORT]
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from examples.service.parts import Service


def main(port: str = "8000") -> None:
    """Run until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Service(port=int(port)) as service:
        print(f"The page: {service.url}", flush=True)
        print("Its parts:", *(f"{name} ({part.process.pid})" for name, part in service.parts.items() if part.process))
        print("Metrics of a worker:", service.metrics["worker-1"])
        print("Its flows: reactive-runtime ps PID. Stop it with Ctrl-C.", flush=True)
        with suppress(KeyboardInterrupt):
            while True:
                signal.pause()
        print("The workers finish the jobs that they have begun.", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
