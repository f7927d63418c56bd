"""Elements with acknowledgement, and the systems that a back-end runs.

Start reading at `_elements.acked`, which says what an element owes to the system it came from. A module with a public
name is an adapter; a folder beside it holds its parts. Nothing else in the package imports this one.
"""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.connect._elements.acked import Acked, NotHandledError
from reactive_runtime.connect._elements.acked_flow import AckedFlow
from reactive_runtime.connect._elements.commit_order import InOrder

__all__ = ["Acked", "AckedFlow", "InOrder", "NotHandledError"]

_all_at_home(globals())
