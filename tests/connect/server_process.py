"""A server in a process of its own: it is killed, stopped, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess

__all__ = ["ServerProcess"]


class ServerProcess:
    """A server that a subclass starts."""

    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """It answers no more until `go_on`."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)  # all of its threads have stopped

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)
