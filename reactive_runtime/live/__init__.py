"""The live flows of a running process, and why stalled ones are stuck: `reactive-runtime ps PID` and `top PID`.

A *look* searches for the live subscriptions only when it is asked, so flows cost the same with and without it. Begin to
read with `snapshot`; `_history` takes the looks, `_reading` reads a flow, and `_causes` finds the cause of a stall.
"""

from reactive_runtime._support.public_names import at_home
from reactive_runtime.live._model import Cause, FlowState, Snapshot, Stage
from reactive_runtime.live._signals import dump_on_signal
from reactive_runtime.live._snapshot import snapshot
from reactive_runtime.live._socket import LiveError, ask, close, open  # noqa: A004 - of `live.open`, as `gzip.open` is

__all__ = [
    "Cause",
    "FlowState",
    "LiveError",
    "Snapshot",
    "Stage",
    "ask",
    "close",
    "dump_on_signal",
    "open",
    "snapshot",
]

at_home(__name__, *(globals()[name] for name in __all__))
