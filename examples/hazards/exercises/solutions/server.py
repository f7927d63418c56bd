"""What says that the rest is there is stored last."""

from __future__ import annotations


class Server:
    """Has an address once it is open."""

    def __init__(self) -> None:
        self.is_open = False
        self.address: str | None = None

    def open(self) -> None:
        """From now on there is an address."""
        self.address = "localhost:80"
        self.is_open = True

    def connect(self) -> str | None:
        """The address, or None where the server is not open yet."""
        if not self.is_open:
            return None
        return f"http://{self.address}"


SOLUTION = Server
