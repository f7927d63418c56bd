"""Where `KillSwitch`, `ParallelFlow` and `Valve` were. Import them from `reactive_runtime`."""

from reactive_runtime._operators.backpressure import KillSwitch, ParallelFlow, Valve

__all__ = ["KillSwitch", "ParallelFlow", "Valve"]
