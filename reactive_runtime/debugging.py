"""For a debugger: operators that run as they are written, instead of fused into one loop.

A chain of synchronous operators runs as one generated loop (`docs/design.md`), where a breakpoint in the source of an
operator is not hit. With fusing turned off each operator's method is called for each element. A user's functions are
called either way, and breakpoints in them are hit.

    REACTIVE_RUNTIME_FUSE=0 python -m pdb program.py       # for a whole process

    with fusing(False):                                    # for what begins to run in the block
        flow.run()
"""

from reactive_runtime._core.fuse import fusing

__all__ = ["fusing"]
