"""Bills orders: one stream of NATS JetStream in, one out, and one for the orders that can't be billed.

python -m examples.connect.orders_in_nats nats://localhost:4222

The streams ORDERS, BILLS and UNBILLED have to be there, with the subjects `orders`, `bills` and `unbilled`:
`nats stream add ORDERS --subjects orders --defaults`.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from reactive_runtime import Flow
from reactive_runtime.connect.jetstream import JetStreamError, Message, Writer, read

PRICES = {"tea": 3, "milk": 1}


def bill(message: Message) -> dict[str, Any]:
    """The bill of an order."""
    order = json.loads(message.data)
    return {"order": message.sequence, "sum": PRICES[order["name"]] * order["count"]}


def as_json(value: Any) -> bytes:
    """The body of a message."""
    return json.dumps(value).encode()


def number(value: dict[str, Any]) -> str:
    """The id of a bill: a bill that is published once more is not stored once more."""
    return str(value["order"])


def billing(url: str, pool: ThreadPoolExecutor, bills: Writer, unbilled: Writer) -> Flow[list[int]]:
    """Bill the orders that come; the flow gives the numbers of the bills."""
    orders = read(
        url,
        "ORDERS",
        "billing",
        executor=pool,
        max_deliveries=5,
        dead_letters=lambda order: unbilled.append([order.data]),
    )
    billed = orders.on_error_continue(
        lambda order: order.map(bill),
        to=lambda letter: unbilled.append([letter.element.data]),
    )
    written = billed.buffer_timeout(256, 0.05).map(bills.append)
    return written.acknowledge().retry_backoff(20, when=JetStreamError)


def main(url: str) -> None:
    """Bill orders until Ctrl-C."""
    with (
        ThreadPoolExecutor(1) as pool,
        Writer(url, "bills", data=as_json, ids=number) as bills,
        Writer(url, "unbilled") as unbilled,
    ):
        billing(url, pool, bills, unbilled).for_each(lambda numbers: print(f"{len(numbers)} billed"))


if __name__ == "__main__":
    main(*sys.argv[1:])
