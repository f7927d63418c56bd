"""The rules that an adapter keeps, with a line for each."""

from __future__ import annotations

from typing import Final

__all__ = ["MEANINGS"]

MEANINGS: Final = {
    "A.1": "the server hands out as many messages as are demanded, and its documented prefetch at most",
    "A.2": "no message is acknowledged before it is handled",
    "A.3": "no acknowledgement is lost, in whatever order messages are acknowledged",
    "A.4": "each message is acknowledged once",
    "A.5": "a refused message is delivered again",
    "A.6": "a worker that is killed loses no message, and only those come again that it had not acknowledged",
    "A.7": "a lost connection is found again, or fails the flow with an error that names the server",
    "A.8": "a poison message ends in the dead letters, and the others are handled",
    "A.9": "cancel returns at once, nothing comes after it, and the connection is closed",
    "A.10": "a long backlog takes no more memory than a short one",
    "A.11": "no error and no log line has the password",
}
"""One line for each."""
