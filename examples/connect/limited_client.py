"""Asks a service for many users, within its limits: not too often, not too many at once, and not while it is down.

python -m examples.connect.limited_client http://localhost:8000
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import httpx

from reactive_runtime import Bulkhead, CircuitBreaker, DeadLetter, Flow
from reactive_runtime.connect.http import retry_after

ATTEMPTS = 5


def is_down(error: Exception) -> bool:
    """Whether the service itself has failed: not where there is no such user, or where it is asked too often."""
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 500
    return status >= 500


def again(error: Exception, attempt: int) -> Flow[int]:
    """When to call once more: when the service says, or after a pause that grows. An empty flow: not at all."""
    is_busy = isinstance(error, httpx.HTTPStatusError) and error.response.status_code in (429, 503)
    if attempt >= ATTEMPTS or not (is_busy or isinstance(error, httpx.TransportError)):
        return Flow.empty()
    pause = retry_after(error, at_most=60)
    return Flow.timer(0.1 * 2**attempt if pause is None else pause)


class Users:
    """The service; all flows that call it share one.

    Args:
        client: Its connections; `timeout` and `limits` are set there.
        pool: The threads that wait for the service.
        calls: How many calls a second it allows.
    """

    def __init__(self, client: httpx.Client, pool: ThreadPoolExecutor, calls: int = 50) -> None:
        self.client, self.pool, self.calls = client, pool, calls
        self.breaker = CircuitBreaker(failures=10, window=10, reset_after=5, when=is_down)
        self.at_once = Bulkhead(8)

    def name(self, user: int) -> str:
        """One call."""
        answer = self.client.get(f"/users/{user}")
        answer.raise_for_status()
        return answer.text

    def call(self, user: int) -> Flow[str]:
        """One call, with its limits, and its retries."""
        once = Flow.from_callable(lambda: self.name(user)).subscribe_on(self.pool)
        return once.timeout(10).circuit_breaker(self.breaker).bulkhead(self.at_once).retry_when(again)

    def names(self, users: Flow[int], letters: list[DeadLetter]) -> Flow[str]:
        """The names, and in `letters` the users that have none, or could not be asked for."""
        return users.rate_limit(self.calls).on_error_continue(
            lambda user: user.flat_map(self.call), letters.append, concurrency=16
        )


def main(url: str) -> None:
    """Ask for a hundred users."""
    letters: list[DeadLetter] = []
    with httpx.Client(base_url=url, timeout=5) as client, ThreadPoolExecutor(8) as pool:
        Users(client, pool).names(Flow.range(100), letters).for_each(print)
    print(len(letters), "without an answer")


if __name__ == "__main__":
    main(*sys.argv[1:])
