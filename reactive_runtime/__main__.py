"""`python -m reactive_runtime`."""

from reactive_runtime._cli import main

main()
