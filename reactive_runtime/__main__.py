"""`python -m reactive_runtime`."""

from reactive_runtime.cli import main

main()
