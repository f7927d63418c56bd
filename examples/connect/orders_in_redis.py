"""Bills orders: one stream of Redis in, one out, and one for the orders that can't be billed.

python -m examples.connect.orders_in_redis redis://localhost:6379/0
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import redis

from reactive_runtime import Flow
from reactive_runtime.connect.redis_streams import Message, Writer, read

PRICES = {b"tea": 3, b"milk": 1}


def bill(order: Message) -> dict[str, str | int]:
    """The bill of an order."""
    return {"order": order.id, "sum": PRICES[order.fields[b"name"]] * int(order.fields[b"count"])}


def billing(url: str, pool: ThreadPoolExecutor, bills: Writer, unbilled: Writer) -> Flow[list[str]]:
    """Bill the orders that come; the flow gives the ids of the bills."""
    orders = read(
        url,
        "orders",
        "billing",
        "worker-1",
        executor=pool,
        max_deliveries=5,
        dead_letters=lambda order: unbilled.append([order.fields]),
    )
    billed = orders.on_error_continue(
        lambda order: order.map(bill),
        to=lambda letter: unbilled.append([letter.element.fields]),
    )
    written = billed.buffer_timeout(256, 0.05).map(bills.append)
    return written.acknowledge().retry_backoff(20, when=redis.ConnectionError)


def main(url: str) -> None:
    """Bill orders until Ctrl-C."""
    with (
        ThreadPoolExecutor(1) as pool,
        Writer(url, "bills", maxlen=100_000) as bills,
        Writer(url, "unbilled") as unbilled,
    ):
        billing(url, pool, bills, unbilled).for_each(lambda ids: print(f"{len(ids)} billed"))


if __name__ == "__main__":
    main(*sys.argv[1:])
